"""Rules that recognize questions by their words, in English, French and Krio.

The rules are in `rules.txt`. They run before similarity, on normalized text. None of them names
only a command that moves money: a transfer needs the words of a request.
"""

import re
from typing import Final, cast

from tapgate.messenger.model import Command
from tapgate.messenger.understanding.word_lists import WORDS, load_rules, match_rule

_RULES: Final = load_rules("rules.txt")
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
