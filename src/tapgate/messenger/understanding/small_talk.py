"""Classification of small talk: courtesies, and questions that only need an explanation.

Only fixed phrases and patterns match; similarity is not used.
"""

import re
from typing import Final, Literal

from tapgate.messenger.understanding.normalization import MAX_LENGTH, normalize_text
from tapgate.messenger.understanding.phrases import en, fr, split_phrases

SmallTalk = Literal[
    "greeting", "thanks", "farewell", "forgotten_pin", "take_back", "lost_phone", "fees"
]


def _normalize_phrases(phrases: str) -> frozenset[str]:
    return frozenset(map(normalize_text, split_phrases(phrases)))


_GREETINGS: Final = _normalize_phrases(en.GREETINGS + fr.GREETINGS)
_FAREWELLS: Final = _normalize_phrases(
    """ok; okay; okey; k; oki; alright; all right; d'accord; dac; daccord; entendu
    bye; goodbye; bye bye; good bye; see you; good night; see you later; ok bye; ok thanks bye
    no; nope; no thanks; no thank you; not now; non; non merci; pas maintenant
    au revoir; à bientôt; bonne nuit; à plus; à demain"""
)
_THANKS_PATTERN = re.compile(
    r"(?:ok |okay |great |super |parfait |nice |god )*"
    r"(?:thanks?|thank you|thank u|thx|tnx|tenki|merci|mersi|je vous remercie|je te remercie)"
    r"(?: (?:very|so|much|a|lot|you|ya|sir|madam|ma|my|brother|sister|friend|dear|for|your|the"
    r"|help|beaucoup|bien|mile|fois|infiniment|monsieur|madame|chef|frere|pour|votre|aide))*"
)
_PIN_WORDS = r"(?:pin|pins|kod|sikrit nomba|code|pascode|pasword|mot de pase)\b"
_FORGOTTEN_PIN_PATTERN = re.compile(
    rf"\b(?:forgot\w*|forget|foget|lost|los|reset|recover|retrieve"
    rf"|(?:dont|do not|cant|canot|can not|no|nor) (?:remember|recal|know|memba|rimemba|sabi)"
    rf"|what is|whats|tel me|show me|oublie\w*|perdu|reinitialis\w+|recuper\w+"
    rf"|(?:rapele|souviens|souvient|conais|sais) (?:plus|pas)"
    rf"|quel est|c est quoi|done moi|donez moi)"
    rf" (?:\w+ ){{0,3}}?(?:my|mi|the|mon|le|de mon|du|ma|d)? ?(?:(?:secret|card|wallet|carte) )?"
    rf"{_PIN_WORDS}|\b{_PIN_WORDS} (?:reset|oublie\w*|perdu|forgoten|lost|don los|los"
    rf"|komot na mi (?:ed|maynd))\b"
)
_TRANSFER_WORDS = (
    r"(?:payment|transfer|transaction|paiement|payement|transfert|virement|envoi|operation)"
)
_REVERSAL_PATTERN = re.compile(
    r"\b(?:cancel|reverse|undo|revoke|recal|take back|stop|anule\w*|reprendre|recuperer)"
    rf" (?:\w+ )?(?:last|previous|recent|old|done|past) {_TRANSFER_WORDS}"
    r"|\b(?:anule\w*|reprendre|recuperer|rembourse\w*) (?:\w+ )?(?:dernier|derniere)"
    rf" {_TRANSFER_WORDS}"
    rf"|\b(?:anule\w*|reprendre) (?:\w+ ){{0,2}}{_TRANSFER_WORDS} d hier"
    rf"|\b(?:reverse|undo|take back) (?:my|the|a|that|this) {_TRANSFER_WORDS}"
    r"|\b(?:cancel|reverse|undo|anule\w*) .*\b(?:i|ai) (?:just |already |deja )?"
    r"(?:made|sent|did|paid|fait|envoye|paye)\b"
)
_PHONE_PATTERN = re.compile(r"\b(?:phone|fone|telephone|portable|mobile|sim|handset)\b")
_LOST_PATTERN = re.compile(
    r"\b(?:stolen|stole|steal|tief|lost|loss|mising|gone|vole\w*|perdu\w*|disparu\w*)\b"
)
_CARD_PATTERN = re.compile(r"\b(?:card|cards|kard|carte|cartes|kart)\b")
_FEES_PATTERN = re.compile(
    r"\b(?:fe|fes|charge|charges|frais|tarif|tarifs|comision)\b"
    r"|\b(?:cost|costs|coute|coutent|price) .*\b(?:send|sending|transfer|envoyer|envoi|transfert)\b"
    r"|\b(?:send|sending|transfer|envoyer|envoi|transfert)\b.* \b(?:cost|costs|coute|coutent)\b"
)
_QUESTION_PATTERN = re.compile(
    r"\b(?:what|whats|how|which|is|are|quel\w*|combien|y a|tel|show|your|vos|les)\b"
)


def classify_small_talk(text: str) -> SmallTalk | None:  # noqa: PLR0911 - one return per class
    if len(text) > MAX_LENGTH:
        return None
    normalized = normalize_text(text)
    if normalized in _GREETINGS:
        return "greeting"
    if normalized in _FAREWELLS:
        return "farewell"
    if _THANKS_PATTERN.fullmatch(normalized):
        return "thanks"
    is_lost_card = _CARD_PATTERN.search(normalized) and _LOST_PATTERN.search(normalized)
    if _FORGOTTEN_PIN_PATTERN.search(normalized) and not is_lost_card:
        return "forgotten_pin"
    if _REVERSAL_PATTERN.search(normalized):
        return "take_back"
    if _PHONE_PATTERN.search(normalized) and _LOST_PATTERN.search(normalized) and not is_lost_card:
        return "lost_phone"
    if _FEES_PATTERN.search(normalized) and (
        _QUESTION_PATTERN.search(normalized) or len(normalized.split()) == 1
    ):
        return "fees"
    return None
