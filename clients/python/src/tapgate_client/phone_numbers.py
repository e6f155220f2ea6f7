"""Syntax of international phone numbers.

Country codes and trunk prefixes need tables of numbering plans, which only the gateway has.
"""

from typing import Final

MAX_TEXT_LENGTH: Final = 32
_MIN_DIGITS, _MAX_DIGITS = 7, 15
_ALLOWED_CHARACTERS: Final = frozenset("0123456789 -.()")


class PhoneNumberError(ValueError):
    """Text that is not a phone number. The message does not repeat the text."""


def remove_separators(text: str) -> str:
    """Return an international number, with or without separators, as `+` and its digits."""
    if (
        not text.startswith("+")
        or len(text) > MAX_TEXT_LENGTH
        or not _ALLOWED_CHARACTERS.issuperset(text[1:])
    ):
        raise PhoneNumberError(
            "must be a phone number in international format, such as +23276123456"
        )
    digits = f"+{''.join(filter(str.isdigit, text))}"
    require_digit_count(digits)
    return digits


def require_digit_count(digits: str) -> None:
    if not _MIN_DIGITS <= len(digits) - 1 <= _MAX_DIGITS:
        raise PhoneNumberError(f"must have {_MIN_DIGITS} to {_MAX_DIGITS} digits")
