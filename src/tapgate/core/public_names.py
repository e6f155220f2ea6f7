"""Names and other texts by one person as another person may see them.

Names that were stored before the rule in `tapgate_client/names.py` keep their stored form and are
cleaned for display.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

from tapgate_client.names import (
    APOSTROPHES,
    BUSINESS_CHARACTERS,
    MAX_NAME_LENGTH,
    is_allowed,
    is_any_mark,
    is_name,
)

#: Shown if cleaning leaves nothing.
_UNKNOWN_NAME: Final = "?"
#: What a phone may turn into a link: a scheme, an email address, a period inside a word, an IP
#: address. Each alternative starts at its punctuation, so that a search takes linear time.
_LINK_PATTERN: Final = re.compile(
    r"[:@.\u3002](?:(?<=:)//|(?<=@)\w|(?<=[\w-][.\u3002])[^\W\d_]{2}|(?<=\d\.)(?:\d{1,3}\.){2}\d)"
)


@lru_cache(maxsize=1024)  # a list has many transactions by few people
def clean_person_name(name: str) -> str:
    """Return a stored customer or child name as other people may see it."""
    return _clean(name, frozenset())


@lru_cache(maxsize=1024)
def clean_business_name(name: str) -> str:
    """Return a stored merchant, agent or partner name as other people may see it."""
    return _clean(name, BUSINESS_CHARACTERS)


def mask_person_name(name: str) -> str:
    """Clean and shorten a name: `Fatu Binta Kamara` becomes `Fatu K.`."""
    return _shorten(clean_person_name(name))


def get_public_agent_name(name: str, business_name: str | None) -> str:
    """Return an agent's name as customers see it.

    This is the business name, or a shortened name such as `Aminata K.` if there is none: an agent
    without a business name is a person.
    """
    if business_name is not None:
        return clean_business_name(business_name)
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
    return "" if is_any_mark(character) else unicodedata.normalize("NFKC", character)


def _shorten(name: str) -> str:
    first, *others = name.split()
    return f"{first} {_get_initial(others[-1])}" if others else first


def _get_initial(name: str) -> str:
    """Return a name's first letter with its marks and a period."""
    letters = name.lstrip(f"{APOSTROPHES}-")
    end = 1
    while end < len(letters) and is_any_mark(letters[end]):
        end += 1
    return f"{letters[:end]}."


def _clean(name: str, others: frozenset[str]) -> str:
    """Return a name without links, and with spaces instead of characters that names cannot have."""
    if is_name(name, others):
        return " ".join(name.split())
    text = " ".join(word for word in name.split() if not _has_link(word))
    kept = "".join(
        text[position] if is_allowed(text, position, others) else " "
        for position in range(len(text))
    )
    cleaned = " ".join(kept.split())[:MAX_NAME_LENGTH].rstrip()
    return cleaned if is_name(cleaned, others) else _UNKNOWN_NAME
