"""Chat and form texts, with one data file per language, and localized formats.

All languages have the same keys, and a text has the same placeholders in every language.
"""

import re
import unicodedata
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Final

import msgspec

from tapgate.messenger.model import LANGUAGES, Language
from tapgate_client import money

TEXTS: Final[Mapping[Language, Mapping[str, str]]] = {
    language: msgspec.toml.decode(
        Path(__file__).with_name(f"{language}.toml").read_bytes(), type=dict[str, str]
    )
    for language in LANGUAGES
}
#: French "de" becomes "d'" before a vowel.
_ELIDABLE: Final = re.compile(r"\bde (?=\{(\w+)\})")
_SENTENCE_END: Final = re.compile(r"\{(\w+)\}\.(?!\.)")


def translate(language: Language, key: str, **values: object) -> str:
    text = TEXTS[language][key]
    if language == "fr":
        text = _ELIDABLE.sub(lambda match: _get_preposition(str(values[match[1]])), text)
    # An abbreviated name such as "Aminata K." ends the sentence itself.
    text = _SENTENCE_END.sub(
        lambda end: end[0][:-1] if str(values[end[1]]).endswith(".") else end[0], text
    )
    return text.format_map(values)


def _get_preposition(name: str) -> str:
    first = unicodedata.normalize("NFD", name)[:1].lower()
    return "d'" if first and first in "aeiouœæ" else "de "


def has_text(key: str) -> bool:
    return key in TEXTS["en"]


def format_money(amount: str, currency: str, language: Language) -> str:
    """Format an amount: `1234.50` becomes `1,234.50 SLE`, in French `1 234,50 SLE`."""
    sign, digits = ("-", amount[1:]) if amount.startswith("-") else ("", amount)
    try:
        minor = money.parse(digits, currency, allow_zero=True)
        return sign + money.format_money(minor, currency, language)
    except (money.AmountError, KeyError):
        return f"{amount} {currency}"


def localize_money(text: str, language: Language) -> str:
    """Format an amount of a receipt, such as `1,234.50 SLE`, in the language."""
    amount, _, currency = text.replace(",", "").partition(" ")
    return format_money(amount, currency, language)


def format_date(at: date, language: Language) -> str:
    """Format a date as `3 Jan 2026`."""
    months = TEXTS[language]["months"].split()
    return f"{at.day} {months[at.month - 1]} {at.year}"


def format_datetime(at: datetime, language: Language) -> str:
    """Format a date and time as `3 Jan 2026, 14:05`."""
    return f"{format_date(at, language)}, {at:%H:%M}"


def truncate(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
