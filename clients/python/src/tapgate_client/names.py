"""Names of people and businesses, and other text that one person writes and another one reads.

A name appears in the receipts, statements and chats of other customers, so it has no room for a
link. Names that were stored before this rule keep their stored form and are cleaned for display.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

MAX_NAME_LENGTH: Final = 60

#: Shown if cleaning leaves nothing.
_UNKNOWN_NAME: Final = "?"
_APOSTROPHES: Final = "'’"
_BUSINESS_CHARACTERS: Final = frozenset("0123456789&")
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
#: What a phone may turn into a link: a scheme, an email address, a period inside a word, an IP
#: address. Each alternative starts at its punctuation, so that a search takes linear time.
_LINK_PATTERN: Final = re.compile(
    r"[:@.\u3002](?:(?<=:)//|(?<=@)\w|(?<=[\w-][.\u3002])[^\W\d_]{2}|(?<=\d\.)(?:\d{1,3}\.){2}\d)"
)


def is_person_name(text: str) -> bool:
    """Return whether a text is a valid customer or child name."""
    return _is_name(text, frozenset())


def is_business_name(text: str) -> bool:
    """Return whether a text is a valid merchant, agent or partner name."""
    return _is_name(text, _BUSINESS_CHARACTERS)


@lru_cache(maxsize=1024)  # a list has many transactions by few people
def clean_person_name(name: str) -> str:
    """Return a stored customer or child name as other people may see it."""
    return _clean(name, frozenset())


@lru_cache(maxsize=1024)
def clean_business_name(name: str) -> str:
    """Return a stored merchant, agent or partner name as other people may see it."""
    return _clean(name, _BUSINESS_CHARACTERS)


def mask_person_name(name: str) -> str:
    """Clean and shorten a name: `Fatu Binta Kamara` becomes `Fatu K.`."""
    return _shorten(clean_person_name(name))


def mask_agent_name(name: str) -> str:
    """Clean and shorten an agent's name, for agents without a business name."""
    return _shorten(clean_business_name(name))


def build_public_name(first_name: str, last_name: str) -> str:
    """Return a customer's name as merchants and other customers see it: `Aminata K.`."""
    first, last = clean_person_name(first_name), clean_person_name(last_name)
    return first if last == _UNKNOWN_NAME else f"{first} {_get_initial(last)}"


def clean_merchant_name(text: str) -> str | None:
    """Return a payment's merchant name as customers may see it, or None if it is only a link.

    This text never makes a payment fail, so it may have characters that names cannot have.
    """
    shown = hide_links(text)[:MAX_NAME_LENGTH].rstrip()
    return shown if any(map(str.isalnum, shown)) else None


def get_counterparty_name(merchant_name: str | None, public_name: str, *, is_person: bool) -> str:
    """Return the counterparty's name as a customer may see it.

    `merchant_name` is what the merchant sent with the payment.
    """
    if merchant_name is not None and (shown := clean_merchant_name(merchant_name)) is not None:
        return shown
    return clean_person_name(public_name) if is_person else clean_business_name(public_name)


def hide_links(text: str) -> str:
    """Return a text for another person on one line, without links and email addresses."""
    if not text.isprintable():
        text = "".join(character if character.isprintable() else " " for character in text)
    return " ".join("…" if _has_link(word) else word for word in text.split())


def _has_link(word: str) -> bool:
    if not word.isascii():
        word = "".join([char if char.isalpha() else _to_plain(char) for char in word])
    return _LINK_PATTERN.search(word) is not None


@lru_cache(maxsize=16_384)  # all printable characters that are no letters
def _to_plain(character: str) -> str:
    """Return a character's compatibility form: `․`, `．` and `﹒` become periods.

    Marks are dropped. To normalize a whole text with many marks would take quadratic time.
    """
    return "" if _is_any_mark(character) else unicodedata.normalize("NFKC", character)


def _shorten(name: str) -> str:
    first, *others = name.split()
    return f"{first} {_get_initial(others[-1])}" if others else first


def _get_initial(name: str) -> str:
    """Return a name's first letter with its marks and a period."""
    letters = name.lstrip(f"{_APOSTROPHES}-")
    end = 1
    while end < len(letters) and _is_any_mark(letters[end]):
        end += 1
    return f"{letters[:end]}."


def _is_name(text: str, others: frozenset[str]) -> bool:
    return (
        0 < len(text) <= MAX_NAME_LENGTH
        and any(_is_letter(character) or character in others for character in text)
        and all(_is_allowed(text, position, others) for position in range(len(text)))
    )


def _is_allowed(text: str, position: int, others: frozenset[str]) -> bool:
    character = text[position]
    if character == ".":
        return (
            position > 0
            and _is_in_word(text[position - 1], others)
            and (position + 1 == len(text) or text[position + 1] in _AFTER_PERIOD)
        )
    if _is_any_mark(character):
        return (
            _is_mark(character)
            and position > 0
            and _is_in_word(text[position - 1], frozenset())
            and not _has_too_many_marks(
                text[max(0, position - _MAX_NONSPACING_MARKS) : position + 1]
            )
        )
    return character in " -" or character in _APOSTROPHES or _is_in_word(character, others)


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


def _is_any_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"


def _clean(name: str, others: frozenset[str]) -> str:
    """Return a name without links, and with spaces instead of characters that names cannot have."""
    if _is_name(name, others):
        return " ".join(name.split())
    text = " ".join(word for word in name.split() if not _has_link(word))
    kept = "".join(
        text[position] if _is_allowed(text, position, others) else " "
        for position in range(len(text))
    )
    cleaned = " ".join(kept.split())[:MAX_NAME_LENGTH].rstrip()
    return cleaned if _is_name(cleaned, others) else _UNKNOWN_NAME
