"""What people say that is no command: courtesies, and questions that only have an answer in words.

Taken from the words themselves, never from what they are like.
"""

import re
from typing import Final, Literal

from tapgate.messenger.understanding.phrases import en, fr
from tapgate.messenger.understanding.spelling import LONGEST, plain

Remark = Literal[
    "greeting", "thanks", "farewell", "forgotten_pin", "take_back", "lost_phone", "fees"
]


def _any_of(listed: str) -> frozenset[str]:
    return frozenset(plain(phrase) for phrase in re.split(r"[;\n]", listed)) - {""}


_GREETINGS: Final = _any_of(en.GREETINGS + fr.GREETINGS)
_FAREWELLS: Final = _any_of(
    """ok; okay; okey; k; oki; alright; all right; d'accord; dac; daccord; entendu
    bye; goodbye; bye bye; good bye; see you; good night; see you later; ok bye; ok thanks bye
    no; nope; no thanks; no thank you; not now; non; non merci; pas maintenant
    au revoir; à bientôt; bonne nuit; à plus; à demain"""
)
_THANKS = re.compile(
    r"(?:ok |okay |great |super |parfait |nice |god )*"
    r"(?:thanks?|thank you|thank u|thx|tnx|tenki|merci|mersi|je vous remercie|je te remercie)"
    r"(?: (?:very|so|much|a|lot|you|ya|sir|madam|ma|my|brother|sister|friend|dear|for|your|the"
    r"|help|beaucoup|bien|mile|fois|infiniment|monsieur|madame|chef|frere|pour|votre|aide))*"
)
_A_PIN = r"(?:pin|pins|code|pascode|pasword|mot de pase)\b"
_FORGOTTEN_PIN = re.compile(
    rf"\b(?:forgot\w*|forget|lost|reset|recover|retrieve"
    rf"|(?:dont|do not|cant|canot|can not|no|nor) (?:remember|recal|know|sabi)"
    rf"|what is|whats|tel me|show me|oublie\w*|perdu|reinitialis\w+|recuper\w+"
    rf"|(?:rapele|souviens|souvient|conais|sais) (?:plus|pas)"
    rf"|quel est|c est quoi|done moi|donez moi)"
    rf" (?:\w+ ){{0,3}}?(?:my|mi|the|mon|le|de mon|du|ma|d)? ?(?:(?:secret|card|wallet|carte) )?"
    rf"{_A_PIN}|\b{_A_PIN} (?:reset|oublie\w*|perdu|forgoten|lost)\b"
)
_MOVED = r"(?:payment|transfer|transaction|paiement|payement|transfert|virement|envoi|operation)"
_TAKE_BACK = re.compile(
    r"\b(?:cancel|reverse|undo|revoke|recal|take back|stop|anule\w*|reprendre|recuperer)"
    rf" (?:\w+ )?(?:last|previous|recent|old|done|past) {_MOVED}"
    rf"|\b(?:anule\w*|reprendre|recuperer|rembourse\w*) (?:\w+ )?(?:dernier|derniere) {_MOVED}"
    rf"|\b(?:anule\w*|reprendre) (?:\w+ ){{0,2}}{_MOVED} d hier"
    rf"|\b(?:reverse|undo|take back) (?:my|the|a|that|this) {_MOVED}"
    r"|\b(?:cancel|reverse|undo|anule\w*) .*\b(?:i|ai) (?:just |already |deja )?"
    r"(?:made|sent|did|paid|fait|envoye|paye)\b"
)
_PHONE = re.compile(r"\b(?:phone|fone|telephone|portable|mobile|sim|handset)\b")
_GONE = re.compile(
    r"\b(?:stolen|stole|steal|tief|lost|loss|mising|gone|vole\w*|perdu\w*|disparu\w*)\b"
)
_CARD = re.compile(r"\b(?:card|cards|kard|carte|cartes|kart)\b")
_FEES = re.compile(
    r"\b(?:fe|fes|charge|charges|frais|tarif|tarifs|comision)\b"
    r"|\b(?:cost|costs|coute|coutent|price) .*\b(?:send|sending|transfer|envoyer|envoi|transfert)\b"
    r"|\b(?:send|sending|transfer|envoyer|envoi|transfert)\b.* \b(?:cost|costs|coute|coutent)\b"
)
_ASKS = re.compile(r"\b(?:what|whats|how|which|is|are|quel\w*|combien|y a|tel|show|your|vos|les)\b")


def remark(text: str) -> Remark | None:  # noqa: PLR0911 - one for each
    if len(text) > LONGEST:
        return None
    said = plain(text)
    if said in _GREETINGS:
        return "greeting"
    if said in _FAREWELLS:
        return "farewell"
    if _THANKS.fullmatch(said):
        return "thanks"
    is_card_gone = _CARD.search(said) and _GONE.search(said)
    if _FORGOTTEN_PIN.search(said) and not is_card_gone:
        return "forgotten_pin"
    if _TAKE_BACK.search(said):
        return "take_back"
    if _PHONE.search(said) and _GONE.search(said) and not is_card_gone:
        return "lost_phone"
    if _FEES.search(said) and (_ASKS.search(said) or len(said.split()) == 1):
        return "fees"
    return None
