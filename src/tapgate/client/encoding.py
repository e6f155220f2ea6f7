"""How a program's values are written for the gateway."""

from base64 import b64encode
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from tapgate import clock

#: An amount in major units. A float is none: 0.1 has no exact one.
Money = str | Decimal
#: A day of the platform's calendar.
DateLike = str | date
#: A moment with its time zone, or a day.
DateTimeLike = str | date | datetime


def encode_amount(amount: Money) -> str:
    """`Decimal("1E+3")` -> `"1000"`; whether there may be so much the gateway says."""
    if isinstance(amount, str):
        return amount
    if not isinstance(amount, Decimal):
        raise TypeError(f"an amount is a str or a Decimal, not {type(amount).__name__}")
    if not amount.is_finite():
        raise ValueError("an amount is a finite number")
    return format(amount, "f")


def encode_optional_amount(amount: Money | None) -> str | None:
    return None if amount is None else encode_amount(amount)


def encode_date(value: DateLike) -> str:
    if isinstance(value, datetime):
        raise TypeError("a day is a date or a str, not a datetime")
    return value.isoformat() if isinstance(value, date) else value


def encode_optional_date(value: DateLike | None) -> str | None:
    return None if value is None else encode_date(value)


def encode_optional_datetime(value: DateTimeLike | None) -> str | None:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a moment needs its time zone")
        return clock.format_rfc3339(value)
    return value.isoformat() if isinstance(value, date) else value


_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def encode_image(content: bytes) -> str:
    """A JPEG or PNG as a data URI; whether it is a good one the gateway says."""
    kind = "png" if content.startswith(_PNG_SIGNATURE) else "jpeg"
    return f"data:image/{kind};base64,{b64encode(content).decode()}"


def omit_none(**members: Any) -> dict[str, Any]:
    """Those that are not None. A trailing `_` is for names that are words of Python."""
    return {name.removesuffix("_"): value for name, value in members.items() if value is not None}
