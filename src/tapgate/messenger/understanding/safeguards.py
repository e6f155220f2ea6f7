"""Checks for commands where similarity alone is not enough to act.

A text similar to a transfer request may report a transfer, ask about one or forbid it. A text with
any such sign does not start a transfer.
"""

import re

from tapgate.messenger.model import Command
from tapgate.messenger.understanding.normalization import (
    NUMBER_PLACEHOLDER,
    normalize_text,
    to_phonetic,
)


def _normalize_words(text: str) -> frozenset[str]:
    return frozenset(normalize_text(word) for word in text.split())


#: Phonetic keys of words for sending, including misspellings.
_SEND_SOUNDS = frozenset(
    to_phonetic(word)
    for word in _normalize_words(
        """send sen sned sedn sending transfer tranfer trasnfer transfar trasfer transfert
        transferer envoyer envoie envoye envoi envoyez anvoyer remit"""
    )
)
_SEND_WORDS = _normalize_words(
    """pay paye payer paie pe give gi giv tranzfa donne donner donnez verse verser versez wire move
    share partager virement virment vireman"""
)
_MONEY_WORDS = _normalize_words(
    "money mony moni mone cash funds leones leone sle le argent fric sous fonds francs fcfa cfa gnf"
) | {NUMBER_PLACEHOLDER}
#: Words that suggest a negation, a stop, a past transfer, a question, an action of a third party,
#: or an object other than money.
_DOUBT_WORDS = _normalize_words(
    """
    not no nor never neva dont doesnt didnt cant cannot wont shouldnt isnt wasnt havent hasnt arent
    without stop cancel wait hold abort undo block blok blocked freeze lost stolen stole steal tief
    sent sended did does was were has had been already receive received recieved receiving got
    arrived arrive came come
    is are who whom why when where what wetin which how if whether should will shall could might may
    yesterday tomorrow later earlier before after last ago past
    wrong mistake mistakenly error problem failed fail pending missing back refund reverse reversed
    scam scammed scammer fraud fake thief hacked safe sure stranger
    your he she they said says asked asks wants told tells keeps trying
    receipt statement statment balance history code otp pin password passcode limit limits maximum
    max more allowed fee fees charge charges cost costs id passport document documents photo picture
    selfie kyc message sms email mail location airtime data credit bill loan lend borrow request
    instead but except unless because
    pas ne n jamais plus sans arrete arreter arretez annule annuler annulez attends attendez
    bloque bloquer bloquez perdu perdue vole volee oublie
    est sont ai as avons avez avait ont ete recu recue recus recevoir arrive arriver passe deja
    qui quand pourquoi ou combien comment si quoi quel quelle quels quelles
    hier demain tard avant apres dernier derniere
    erreur trompe probleme echec echoue manque retour rembourse rembourser remboursez rendre rendez
    arnaque arnaquer arnaqueur fraude voleur pirate inconnu
    votre tes il elle ils elles dit demande demander veut va vont doit
    releve extrait solde historique limite limites plafond plafonds frais
    identite passeport photo selfie unites facture pret prete preter emprunter mais sauf parce lieu
    bin don dɔn nɔ noba nɔba go kin omos omɔs omoch usay usai wusai wusay udat wai aw wen we ef bot
    se tel tɛl told aks den dɛn dem una yestade tumara tumoro leta olredi bifo rong rɔng mistek bak
    tif los lɔs chaj stetment mɛsej pikchɔ fri free gratuit aydi dɔkyumɛnt paspɔt
    """
)
#: Money requested for the user, or a transfer that already happened.
_NOT_TO_OTHERS_PATTERN = re.compile(
    r"\b(s[en]*d|send|sen|gi|pe|transfer|pay|give|envoi\w*|envoy\w*|donne\w*|verse\w*|paye\w*)"
    r" (am )?(me|mi|us|my account|moi|nous)\b(?! (broda|brother|sista|mama|papa|padi|pikin))"
    r"|\b[mt] (a |ont |as |avez )?(envoy|envoi|donne|verse|paye|transfer|vire)"
    r"|\b(a|ai|as|ont|avez|avons) (\w+ )?(envoye|envoie|transfere|verse|paye|donne)\b"
    # Without "wan" or "mek", a Krio verb after its subject is in the past: "a sɛn 50 to Fatu".
    r"|(?<!mek )(?<!make )(?<!le )(?<!let )\b(a|i|we|wi|yu|you|e|she|he)( (jos|just|jus|jis))? "
    r"(sen|send|pay|pe|gi|give|tran[sz]fa|transfer)\b"
    r"|\b(can|could|kin|may) (i|we|a|wi)\b|\b(puis je|peut on|on peut|est ce qu)"
)
_PROHIBITION_PATTERN = re.compile(
    r"^(\w+ )?((i |please |pls |abeg |a )*(dont|do not|nor|never|no wan|no need)\b(?! (have|know|re"
    r"member|find|understand|se))|(je |j |il |elle |on |merci de )*(ne|n)\b.* (pas|plus|jamais)\b"
    r"|je \w+ (pas|plus)\b)"
)
_PROHIBITION_EXEMPT_COMMANDS = frozenset(
    {"cancel", "person", "help", "language", "register", "history"}
)


def is_transfer_request(normalized: str, *, is_question: bool) -> bool:
    """Return whether a text similar to "send money" really asks for a transfer.

    `normalized` is the result of `normalize_text`. `is_question` is True if the text has a question
    mark.
    """
    words = normalized.split()
    has_verb = any(word in _SEND_WORDS or to_phonetic(word) in _SEND_SOUNDS for word in words)
    return has_verb and not is_doubtful(normalized, is_question=is_question)


def is_doubtful(normalized: str, *, is_question: bool) -> bool:
    """Return whether anything suggests that the text does not ask for a transfer now."""
    return (
        is_question
        or not _DOUBT_WORDS.isdisjoint(normalized.split())
        or _NOT_TO_OTHERS_PATTERN.search(normalized) is not None
    )


def mentions_money(normalized: str) -> bool:
    return not _MONEY_WORDS.isdisjoint(normalized.split())


def is_prohibition(normalized: str, command: Command | None) -> bool:
    """Return whether the text asks not to run the command; always False for exempt commands."""
    return (
        command not in _PROHIBITION_EXEMPT_COMMANDS
        and _PROHIBITION_PATTERN.search(normalized) is not None
    )
