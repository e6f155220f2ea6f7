"""Classification of small talk: courtesies, and questions that only need an explanation.

Only fixed phrases and the rules in `small_talk.txt` match; similarity is not used.
"""

import re
from typing import Final, Literal, cast

from tapgate.messenger.understanding.normalization import MAX_LENGTH, normalize_text
from tapgate.messenger.understanding.phrases import en, fr, split_phrases
from tapgate.messenger.understanding.word_lists import WORDS, load_rules, match_rule

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
_THANKS_PATTERN: Final = re.compile("(?:{praise} )*{thanks}(?: {praise})*".format_map(WORDS))
_RULES: Final = load_rules("small_talk.txt")


def classify_small_talk(text: str) -> SmallTalk | None:
    if len(text) > MAX_LENGTH:
        return None
    normalized = normalize_text(text)
    if normalized in _GREETINGS:
        return "greeting"
    if normalized in _FAREWELLS:
        return "farewell"
    if _THANKS_PATTERN.fullmatch(normalized):
        return "thanks"
    return cast("SmallTalk | None", match_rule(_RULES, normalized))
