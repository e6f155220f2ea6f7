"""Classification of small talk: courtesies, and questions that only need an explanation.

Only fixed phrases and the rules in `small_talk.txt` match; similarity is not used.
"""

import re
from typing import Final, Literal, cast

from tapgate.messenger.understanding.normalization import MAX_LENGTH, normalize_text
from tapgate.messenger.understanding.phrases import FAREWELLS, GREETINGS
from tapgate.messenger.understanding.word_lists import WORDS, load_rules, match_rule

SmallTalk = Literal[
    "greeting", "thanks", "farewell", "forgotten_pin", "take_back", "lost_phone", "fees"
]

_THANKS_PATTERN: Final = re.compile("(?:{praise} )*{thanks}(?: {praise})*".format_map(WORDS))
_RULES: Final = load_rules("small_talk.txt")


def classify_small_talk(text: str) -> SmallTalk | None:
    if len(text) > MAX_LENGTH:
        return None
    normalized = normalize_text(text)
    if normalized in GREETINGS:
        return "greeting"
    if normalized in FAREWELLS:
        return "farewell"
    if _THANKS_PATTERN.fullmatch(normalized):
        return "thanks"
    return cast("SmallTalk | None", match_rule(_RULES, normalized))
