"""Rules that recognize questions by their words, in English, French and Krio.

The rules run before similarity, on normalized text. They never name a command that moves money: a
transfer is only recognized by `is_transfer_wish`, which requires the words of a request.
"""

import re
from typing import Final

from tapgate.messenger.model import Command

_MONEY: Final = r"(?:mon[ei]y?|mony|cash|kash|argent|sous|fric|especes|liquide|#|le|leones?)"
_OWN: Final = r"(?:my|mi|mon|ma|the|di|le|la|dis|this|une?|a|an|new|nyu|nouvele?|carte?)"
_CARD: Final = r"(?:cards?|kards?|kads?|cartes?|kart|crad)"
_WHERE: Final = (
    r"(?:where|wusai|wusay|usai|usay|us (?:sai|say|ples|eria|side)|us|ou|find|fen|fine|trouver|"
    r"trouve|locate|cherche|loking|nearest|near|nearby|nia|closest|close|klos|proche|proches|pres|"
    r"around|any|y a|is there|are there|wich|which|quel|nex|neks|next|location)"
)
_SEND_NOUN: Final = (
    r"(?:pa(?:y|ie)?ments?|pements?|paiements?|transfer(?:t|s|ts)?|tran[sz]fa|tranzfer|"
    r"transactions?|tran[sz]aksho?ns?|virement|envoi|money|moni|argent|cards?|kad|carte|it|i|ca)"
)
_SEND_VERB: Final = (
    r"(?:send|sen|sending|snd|sned|transfer\w*|tran[sz]fa|tranzfer|trans?fr|envo[iy]\w*|anvoy\w*|"
    r"pay|paye|payer|remit|wire|virer)"
)

#: In order of precedence. A text that matches several rules has the command of the first.
_RULES: Final[tuple[tuple[Command, str], ...]] = (
    (
        "wrong_recipient",
        r"\b(?:wrong|rong|mistake\w*|mistek\w*|mauvaise?|tromp\w+|par ereur|ereur)\b.*"
        r"\b(?:number|nomba|person|posin|pipul|account|akawnt|card|kad|guy|man|woman|somebodi|"
        r"recipient|numero|persone|destinataire|compte|carte|an|money|moni|sent|sen|argent)\b"
        r"|\b(?:sent|sen|paid|money|moni|argent|envoye\w*|nomba|number)\b.*\b(?:wrong|rong|"
        r"by mistake|"
        r"mistek|mauvaise?|tromp\w+|par ereur|ereur)\b"
        r"|\b(?:get|tek|take|turn|ton|kol|recuperer|reprendre|ramen\w+)\b.*\b(?:money|moni|"
        r"argent)\b"
        r".*\b(?:back|bak|we a (?:don |bin )?sen|envoye)\b"
        r"|\b(?:reverse|revas|undo)\b.*\b(?:transfer|payment|moni|money|tranzfa|transaction)\b",
    ),
    (
        "declined",
        r"\b(?:why|wetin mek|wai|wetin du|wetin hapin|wetin apin|pourquoi|pk|pkoi|reason)\b.*"
        r"\b(?:declin\w*|diklayn\w*|reject\w*|rijekt\w*|refus\w*|rifyuz\w*|fail\w*|fel|"
        r"block(?:ed)?|"
        r"(?:not?|nor|didnt|did not|dint|doesnt|isnt) (?:go|pas|work|wok|gri|aksept|acept|sen|"
        r"through|suceed|complete|going|working|ebul pe)\w*|echou\w*|rejet\w*|pas pas\w+|"
        r"(?:marche|pase|pases|march\w+|valide) pas)\b"
        rf"|\b{_SEND_NOUN}\b.*\b(?:declined?|diklayn\w*|reject(?:ed)?|rijekt\w*|refused?|"
        rf"refusee?s?|"
        r"rifyuz\w*|fail(?:s|ed)?|failing|fel|echoue\w*|rejetee?|unsucesful|bounced?|"
        r"(?:not|no|nor|didnt|did not|dint|doesnt|isnt|wont|dont) (?:go|pas|work|wok|gri|aksept|"
        r"acept|through|going|working|suces\w*)\w*|(?:est|pase|es) pas(?: pase\w*)?|marche pas)\b"
        r"|\b(?:den|dem|they|una|you|machine|mashin|terminal)\b.*\b(?:rifyuz|rijekt|refused?|"
        r"declined?|"
        r"diklayn|rejected?)\b"
        r"|\b(?:declined|refusee?|rejected|rejetee?|diklayn|rijekt)$",
    ),
    (
        "unblock",
        rf"\b(?:unblock|unblok|onblok|unlock|unlok|unfreze|reactivate|debloqu\w+|reactiv\w+|"
        rf"deverou\w+)"
        rf"\b|(?<!cant )(?<!canot )(?<!no )(?<!not )(?<!nor )(?<!no de )\b(?:found|fen|find|"
        rf"retrouve\w*|si)\b (?:back )?(?:{_OWN} )*{_CARD}(?: bak| back)?\b"
        rf"|\b(?:opin|open|lus)\b (?:\w+ )?{_CARD} (?:bak|back|again|igen)\b",
    ),
    (
        "block",
        rf"\b(?:block|blok|blocked|freze|lock|lok|stop|disable|bloqu\w+|oposition|gele\w*|cancel)\b"
        rf" (?:\w+ ){{0,3}}?{_CARD}\b"
        rf"|\b{_CARD}\b.*\b(?:lost|los|stolen|stole|tif|tief|mising|gone|perdue?|volee?|vole|"
        rf"disparu\w*|"
        r"no de(?: igen)?|fodom)\b"
        r"|\b(?:lost|los|lose|stole|stolen|stealing|tif|tief|tek|took|perdu\w*|vole|volee?|mis|lef|"
        r"left|"
        rf"no si|no de si|cant find|canot find|dont se|dropped|forget|"
        rf"robbed)\b (?:\w+ ){{0,4}}?{_CARD}\b",
    ),
    (
        "link",
        rf"\b(?:link|conect|konekt|pair|ad|activate|aktivet|join|joyn|atach|asocier|lier|relier|"
        rf"activer|"
        rf"ajouter|ajoute|conecter|registar|register|rijista)\b (?:\w+ ){{0,3}}?{_CARD}\b"
        rf"|\b(?:new|nyu|nouvele) {_CARD}\b",
    ),
    (
        "change_pin",
        r"\b(?:change|chenj|changing|modify|modifier|update|changer|change\w*|new|nyu|nouveau|"
        r"another|"
        r"autre|diferent|difren|oda|replace)\b (?:\w+ ){0,3}?(?:pin|code|kod|pascode|secret|"
        r"sikrit)\b",
    ),
    (
        "nearest_agent",
        rf"\b{_WHERE}\b.*\b(?:agents?|ajents?|ejents?|ejants?|ajan|agence|points? de service|"
        rf"kiosk)\b"
        rf"|\b(?:agents?|ajents?|ejents?|ejants?)\b.*\b(?:{_WHERE[3:-1]}|de na|in|na|at|a|klos|"
        rf"ya)\b",
    ),
    (
        "fees",
        r"\b(?:how much|how mutch|omos|omoch|omot|aw moch|combien|cb|c combien|what|wetin|quel\w*|"
        r"is|are|"
        r"do|les|vos|your|una|the|di|tel)\b.*\b(?:fes?|fis?|charges?|chaje?s?|frais|tarifs?|"
        r"comision|komishon|kot|costs?|kos|kost|cout\w*)\b"
        r"|\b(?:how much|omos|omoch|aw moch|combien|cb)\b (?:(?:is it|does it|will it|to|for|fo|"
        r"pour|i go|"
        rf"na|it|de|una|go|tek|take|you|vous|prenez|a|pe|pay|payer|faut|il|"
        rf"il faut) )+{_SEND_VERB}\b"
        r"|\b(?:cut|kot|deduct|take)\b.*\b(?:when|wen|if|pan|from|each|per)\b.*\b(?:sen|send|"
        r"transfer)\b"
        r"|\b(?:is|na|est)\b.*\b(?:fre|fri|gratuit|gratuite)\b",
    ),
    (
        "limits",
        r"\b(?:limits?|limites?|plafonds?)\b"
        r"|\b(?:how much|omos|omoch|aw moch|combien|cb|maximum|max|most|mos|highest|big pas)\b.*"
        r"\b(?:can|kin|ebul|alowed|peux|puis|peut|autorise|lef|stil|remain\w*|reste|encore)\b.*"
        rf"\b{_SEND_VERB}\b",
    ),
    (
        "statement",
        r"\b(?:statements?|statment|stetments?|stetmen|releves?|extrait)\b"
        r"|\b(?:pepa|paper|papier|print|pdf)\b.*\b(?:account|akawnt|acount|compte|transactions?|"
        r"bank|"
        r"tranzakshon)\b",
    ),
    (
        "person",
        r"\b(?:talk|tok|speak|chat|parler?|discuter|conect|konekt|"
        r"transfer)\b (?:\w+ ){0,4}?(?:person|posin|"
        r"somebody|someone|somebodi|human|agent|staf|operator|representative|quelqu un|persone|"
        r"humain|"
        r"conseiler|motalman|manager|suport|customer|kostoma|boss|bos|pipul|service|responsable|qn|"
        r"qqn)\b"
        r"|\b(?:complain\w*|komplen\w*|complaint|plainte|reclamation)\b"
        r"|\b(?:cal|kol|rapel\w*|apel\w+) (?:me|mi|moi)\b",
    ),
    (
        "contact",
        r"\b(?:open|opin|opening|close|klos|lok|ouvert\w*|ouvr\w+|ferm\w+|horaires?|hours|heures?|"
        r"start wok|"
        r"stat wok|working)\b.*\b(?:you|una|ofice|ofis|vous|sunday|sonde|saturday|satide|wekend|"
        r"wiken|"
        r"today|tide|hours|shop|dimanche|samedi|bureau|ouverture)\b"
        r"|\b(?:you|una|ofice|ofis|vous|what time|us tem|ustem|wetin tem|quele heure|when|quand|"
        r"us de|us awa)"
        r"\b.*\b(?:open|opin|close|klos|lok|ouvert\w*|ouvr\w+|ferm\w+|wok|work)\b"
        r"|\b(?:your|una|votre|vos|suport|customer care|kostoma kia|cal center|kol senta|"
        r"service client)\b "
        r"(?:\w+ )?(?:number|nomba|numero|contact|address|adres|adrese|email|imel|ofice|ofis|"
        r"telephone|"
        r"bureau|line|horaires)\b"
        r"|\b(?:how|aw|coment|what number|us nomba|wich number|which number)\b.*\b(?:reach|rich|"
        r"contact|"
        r"cal|kol|joindre|contacter|apeler)\b.*\b(?:you|una|vous)\b",
    ),
    (
        "kyc",
        r"\b(?:verify|veryfay|verif\w*|upload|oplod|kyc|passport|paspot|paseport|selfie|aydi|"
        r"identite|"
        r"identity|national id|id card|document|documents|dokyument|upgrade|opgred)\b",
    ),
    (
        "language",
        r"\b(?:speak|tok|talk|write|rayt|parl\w+|ecri\w*|switch|change|chenj|changer|continue|"
        r"reply|use|put|"
        r"in|en|na|pase\w*|prefer\w*|lek|like)\b (?:\w+ ){0,3}?(?:english|inglish|anglais|french|"
        r"frenc|"
        r"frensh|francais|krio|creole)\b|\b(?:language|langue|langwej)\b",
    ),
    (
        "add_money",
        r"\b(?:deposit\w*|dipozit|depot|deposer|depose|top ?up|top op|recharg\w*|richaj|aliment\w+|"
        r"credit my|crediter|fund my|cash in|kash in)\b"
        rf"|\b(?:ad|put|load|lod|ajouter|metre|mete|charger)\b (?:\w+ ){{0,3}}?{_MONEY}\b",
    ),
    (
        "withdraw",
        r"\b(?:withdra\w*|widro\w*|widra\w*|retirer|retraits?|retire)\b|\bcash ?out\b"
        r"|\bkash (?:awt|aut|ot|out)\b"
        rf"|\b(?:take|tek|pul|komot|remove|sortir|draw|kech)\b (?:\w+ ){{0,3}}?{_MONEY}\b"
        r"|\b(?:ned|nid|want|wan|get|have|avoir|veux)\b (?:\w+ ){0,3}?(?:cash|kash|liquide|"
        r"especes)\b",
    ),
    (
        "register",
        r"\b(?:register|rijista|registar|sign ?up|sayn op|inscri\w*|enroll?)\b"
        r"|\b(?:open|opin|create|creer|ouvrir|start|mek|make)\b "
        r"(?:\w+ ){0,3}?(?:account|acount|akawnt|akant|wallet|walet|compte)\b(?! (?:stetment|"
        r"statement))"
        r"(?<!my account)(?<!my acount)(?<!mi akawnt)(?<!mon compte)(?<!my walet)(?<!mi walet)"
        r"|\b(?:join|joyn)\b (?:una|you|this|dis|tapgate)",
    ),
    (
        "balance",
        r"\b(?:balance|balans|balanse|solde|sold)\b"
        r"|\b(?:how much|how mutch|omos|omoch|aw moch|combien|cb|wetin|what)\b.*\b(?:lef|left|"
        r"remain\w*|reste|"
        r"do i have|i have|i get|a get|ive got|jai|j ai|de na (?:mi|my)|in my|dey|insay mi|sur mon|"
        r"dans mon)\b",
    ),
    (
        "history",
        r"\b(?:history|istri|historique|transactions?|tran[sz]akshons?|operations?)\b"
        r"|\b(?:who|udat|qui)\b.*\b(?:sent|sen|envoye|pay|paid|pe)\b"
        r"|\b(?:last|las|recent|past|dernier\w*)\b (?:\w+ ){0,2}?(?:payments?|pements?|transfers?|"
        r"paiements?|transferts?|pement)\b"
        r"|\b(?:what|wetin|where)\b.*\b(?:spend|spent|spen|bay|bought)\b",
    ),
)
_COMPILED: Final = tuple((command, re.compile(pattern)) for command, pattern in _RULES)

#: Words with which a rule does not apply.
_EXCEPTIONS: Final[dict[Command, re.Pattern[str]]] = {
    "block": re.compile(r"\b(?:undo|found|again|par ereur|retrouve\w*|tek di blok|bak)\b"),
    "history": re.compile(
        r"\b(?:pdf|export\w*|raport|justificatif|cancel|stop|anul\w*|pending|atente)\b"
    ),
    "kyc": re.compile(r"\b(?:transactions?|operations?)\b"),
    "balance": re.compile(rf"\b(?:maximum|max|garder|kep|{_CARD[3:-1]})\b"),
    "declined": re.compile(r"\b(?:arive\w*|taken|debite|blocked?|block)\b"),
    "withdraw": re.compile(r"\b(?:sen|send|omos|envoyer)\b"),
}
#: The place of money for another person: not the person's own wallet.
_OTHER_TARGET_PATTERN: Final = re.compile(
    r"\b(?:for|fo|gi|chez|to|pour)\b (?!(?:my|mi|mon|the|di) (?:account|acount|akawnt|walet|wallet|"
    r"compte|fon)\b)(?:my|mi|mon|ma|his|her|[a-z]+$)"
)
_WHERE_PATTERN: Final = re.compile(r"\b(?:where|wusai|wusay|usai|usay|us ples|us sai|ou)\b")
_WISH_PATTERN: Final = re.compile(
    r"^(?:(?:please|pls|plz|abeg|duya|hello|hi|hey|kushe|bonjour|salut|bjr|slt|ok|now|god morning|"
    r"svp|stp|sil vous plait) )*"
    r"(?:(?:i|a|je|j|we|wi|nous)? ?(?:want|wan|wana|need|ned|nid|must|have|would like|wud lek|lek|"
    r"like|veux|veu|voudrais|dois|doi|souhaite|aimerais)(?: (?:to|fo|for|de|d|mek a|make a|a))* "
    r"|(?:can|could) (?:you|u|yu) (?:please |help me |ep mi )?(?:to )?"
    r"|(?:help|ep|elp|aide|aidez) (?:me|mi|moi)(?: (?:to|fo|a))? "
    r"|(?:let me|mek a|make a|le a|peux tu|pouvez vous|tu peux|vous pouvez) )?"
    rf"(?:please |kindly |just )?(?:{_SEND_VERB}|give|gi|giv|done|doner|donez|verse|verser|pe)\b"
)


def prepare(normalized: str) -> str:
    """Replace words for a wish that look like something else: "I'd", "j'ai besoin"."""
    text = re.sub(r"\bid (?=like\b)", "i ", normalized)
    return re.sub(r"\bj ai (?:besoin|envie) (?:de|d)\b", "je veux", text)


def match_rules(normalized: str) -> tuple[Command, ...]:
    """Return the command that the words ask for, several if they are ambiguous, or none."""
    matches = [command for command, pattern in _COMPILED if pattern.search(normalized)]
    if matches[:1] == ["contact"] and "register" in matches:
        matches = ["register"]  # "How do I open an account with you?"
    if matches and _EXCEPTIONS.get(matches[0]) and _EXCEPTIONS[matches[0]].search(normalized):
        return ()  # similarity decides
    found = tuple(matches[:1])
    if found and found[0] in ("withdraw", "add_money"):
        if _WHERE_PATTERN.search(normalized):
            return ("nearest_agent", *found)
        if found[0] == "add_money" and _OTHER_TARGET_PATTERN.search(normalized):
            return (*found, "send")
    return found


def is_transfer_wish(normalized: str) -> bool:
    """Return whether the text has the form of a request to send money now."""
    return _WISH_PATTERN.search(normalized) is not None
