"""Rules that recognize questions and small talk by their words, in English, French and Krio.

The rules are in `rules.txt` and `small_talk.txt`. They run before similarity, on normalized text.
None of them names only a command that moves money: a transfer needs words that request it.
"""

import re
from typing import Final, Literal, cast

from tapgate.messenger.model import Command
from tapgate.messenger.understanding.normalization import MAX_LENGTH, normalize_text
from tapgate.messenger.understanding.phrases import FAREWELLS, GREETINGS
from tapgate.messenger.understanding.word_lists import WORDS, load_rules, match_rule

#: Courtesies, and questions that only need an explanation.
SmallTalk = Literal[
    "greeting", "thanks", "farewell", "forgotten_pin", "take_back", "lost_phone", "fees"
]

_RULES: Final = load_rules("rules.txt")
_SMALL_TALK_RULES: Final = load_rules("small_talk.txt")
_THANKS_PATTERN: Final = re.compile("(?:{praise} )*{thanks}(?: {praise})*".format_map(WORDS))
_COURTESIES_PATTERN: Final = re.compile(
    "^(?:{courtesy} )+|(?: (?:{courtesy}|{thanks}))+$".format_map(WORDS)
)
_TRANSFER_WISH_PATTERN: Final = re.compile(
    r"(?:(?:{i} )?{wish} (?:{to} )*)?((?:{send}|{give})(?!\S).*)".format_map(WORDS)
)


def strip_courtesies(normalized: str) -> str:
    """Remove greetings, please and thanks around a text."""
    return _COURTESIES_PATTERN.sub("", normalized)


def match_rules(normalized: str) -> tuple[Command, ...]:
    """Return the command that the words ask for, several if they are ambiguous, or none."""
    return cast("tuple[Command, ...]", tuple((match_rule(_RULES, normalized) or "").split()))


def extract_transfer_wish(normalized: str) -> str | None:
    """Return "send # to fatu" of "i want to send # to fatu", or None if the text is no request."""
    match = _TRANSFER_WISH_PATTERN.fullmatch(normalized)
    return match and match[1]


def classify_small_talk(text: str) -> SmallTalk | None:
    """Return the kind of small talk. Only fixed phrases and rules match; similarity is not used."""
    if len(text) > MAX_LENGTH:
        return None
    normalized = normalize_text(text)
    if normalized in GREETINGS:
        return "greeting"
    if normalized in FAREWELLS:
        return "farewell"
    if _THANKS_PATTERN.fullmatch(normalized):
        return "thanks"
    return cast("SmallTalk | None", match_rule(_SMALL_TALK_RULES, normalized))
