"""What all parsers return, and how they report an unreadable file."""

import re
from datetime import date
from typing import Final, NamedTuple

from tapgate_client import money
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.bank_statements import MAX_STATEMENT_LINES, BankStatementFormat

#: Longer texts are cut. Banks allow at most a few hundred characters.
MAX_REFERENCE_LENGTH: Final = 255
MAX_DESCRIPTION_LENGTH: Final = 2_000

_AMOUNT: Final = re.compile(r"([0-9]{1,18})(?:\.([0-9]{0,18}))?", re.ASCII)
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


class ParsedLine(NamedTuple):
    """Booked item. A positive amount was received."""

    day: date
    amount: int  # in minor units
    reference: str | None
    description: str | None


class ParsedStatement(NamedTuple):
    format: BankStatementFormat
    account: str | None  # None in formats that do not name it
    from_day: date
    to_day: date
    opening_balance: int | None
    closing_balance: int | None
    lines: list[ParsedLine]


class UnreadableError(ApiError):
    """422 that names the line on which a file is unreadable. It never quotes the file."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(
            Code.VALIDATION_FAILED,
            f"Line {line} {problem}.",
            details={"line": line, "fields": {"file": f"line {line} {problem}"}},
        )


def require_room(lines: int, line: int) -> None:
    if lines >= MAX_STATEMENT_LINES:
        raise UnreadableError(line, f"exceeds the maximum of {MAX_STATEMENT_LINES} items")


def require_currency(code: str, currency: str) -> None:
    if code != currency:
        raise ApiError(
            Code.CURRENCY_NOT_SUPPORTED, f"The statement must be in the currency {currency}."
        )


def parse_amount(text: str, currency: str, line: int) -> int:
    """Return an unsigned amount in minor units. Further zeros after the decimals are allowed."""
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        raise UnreadableError(line, "has no valid amount")
    fraction = (match[2] or "").rstrip("0")
    try:
        digits = f"{match[1]}.{fraction}" if fraction else match[1]
        return money.parse(digits, currency, allow_zero=True)
    except money.AmountError:
        raise UnreadableError(line, "has an amount that the currency does not allow") from None


def parse_day(text: str, line: int) -> date:
    """Return the date at the start of an ISO date or time."""
    try:
        return require_plausible(date.fromisoformat(text.strip()[:10]), line)
    except ValueError:
        raise UnreadableError(line, "has no valid date") from None


def require_plausible(day: date, line: int) -> date:
    """Reject years in which a time zone could move a day out of Python's range."""
    if not 1000 <= day.year < 9999:
        raise UnreadableError(line, "has no valid date")
    return day


def clean(text: str | None, maximum: int = MAX_DESCRIPTION_LENGTH) -> str | None:
    """Return printable text with single spaces, or None if there is none."""
    cleaned = " ".join(_UNPRINTABLE.sub(" ", text or "").split())[:maximum].strip()
    return cleaned or None


def find_period(lines: list[ParsedLine], end: date | None) -> tuple[date, date] | None:
    """Return the first and last day of a statement, or None if nothing tells it."""
    days = [line.day for line in lines] + ([] if end is None else [end])
    return (min(days), end or max(days)) if days else None
