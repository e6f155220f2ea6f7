"""Amounts, phone numbers and search texts as people type them, in the form that the API accepts."""

import re
from typing import Final

from tapgate.core.phone_numbers import parse_phone_number

_SPACES: Final = re.compile(r"[\s\u00a0\u202f']")
_GROUPED: Final = re.compile(r"\d{1,3}(,\d{3})+(\.\d*)?")


def clean_amount(text: str | None) -> str | None:
    """Remove thousands separators: `1,000.00` and `1 000.00` become `1000.00`.

    A comma elsewhere may be a decimal separator, so it is kept and the API rejects it.
    """
    if text is None:
        return None
    compact = _SPACES.sub("", text)
    return compact.replace(",", "") if _GROUPED.fullmatch(compact) else compact


def clean_phone_number(text: str | None, country: str | None) -> str | None:
    """Return a phone number in international format, or the text if it is not a phone number."""
    return text and (parse_phone_number(text, country) or text)
