"""Names of people and businesses.

A name appears in the receipts, statements and chats of other customers, so it has no room for a
link.
"""

import re
import unicodedata
from typing import Final

MAX_NAME_LENGTH: Final = 60

APOSTROPHES: Final = "'’"
BUSINESS_CHARACTERS: Final = frozenset("0123456789&")
#: Letters and marks that look like a space, like nothing or like punctuation.
_MISLEADING_PATTERN: Final = re.compile(
    r"[\u115f\u1160\u3164\uffa0"  # Hangul fillers
    r"\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"  # default-ignorable marks
    r"\u2cc6\u3031-\u3035\ua4f8-\ua4fd\U0001d16d]"  # similar to periods, colons and slashes
)
#: Nonspacing marks are above, below or in a letter. Spacing marks, as in Burmese, are beside it.
_MAX_NONSPACING_MARKS: Final = 3
#: Allowed after a period: the period ends a word, or an initial as in "J.-P.".
_AFTER_PERIOD: Final = frozenset(" -")


def is_person_name(text: str) -> bool:
    """Return whether a text is a valid customer or child name."""
    return is_name(text, frozenset())


def is_business_name(text: str) -> bool:
    """Return whether a text is a valid merchant, agent or partner name."""
    return is_name(text, BUSINESS_CHARACTERS)


def is_name(text: str, others: frozenset[str]) -> bool:
    return (
        0 < len(text) <= MAX_NAME_LENGTH
        and any(_is_letter(character) or character in others for character in text)
        and all(is_allowed(text, position, others) for position in range(len(text)))
    )


def is_allowed(text: str, position: int, others: frozenset[str]) -> bool:
    character = text[position]
    if character == ".":
        return (
            position > 0
            and _is_in_word(text[position - 1], others)
            and (position + 1 == len(text) or text[position + 1] in _AFTER_PERIOD)
        )
    if is_any_mark(character):
        return (
            _is_mark(character)
            and position > 0
            and _is_in_word(text[position - 1], frozenset())
            and not _has_too_many_marks(
                text[max(0, position - _MAX_NONSPACING_MARKS) : position + 1]
            )
        )
    return character in " -" or character in APOSTROPHES or _is_in_word(character, others)


def _has_too_many_marks(text: str) -> bool:
    return len(text) > _MAX_NONSPACING_MARKS and all(
        unicodedata.category(character) == "Mn" for character in text
    )


def _is_in_word(character: str, others: frozenset[str]) -> bool:
    return _is_letter(character) or _is_mark(character) or character in others


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] == "L" and not _MISLEADING_PATTERN.match(character)


def _is_mark(character: str) -> bool:
    """Return whether a character is a mark that names may have: not an enclosing one."""
    return unicodedata.category(character) in {"Mn", "Mc"} and not _MISLEADING_PATTERN.match(
        character
    )


def is_any_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"
