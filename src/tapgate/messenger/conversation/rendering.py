"""Formatting of money, dates and times for chat messages."""

from datetime import date, datetime

from tapgate.messenger.model import Language
from tapgate_client import money

_MONTH_NAMES = {
    "en": "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(),
    "fr": "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.".split(),
}


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
    return f"{at.day} {_MONTH_NAMES[language][at.month - 1]} {at.year}"


def format_datetime(at: datetime, language: Language) -> str:
    """Format a date and time as `3 Jan 2026, 14:05`."""
    return f"{format_date(at, language)}, {at:%H:%M}"


def truncate(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
