"""Encoding of Python values for the gateway API."""

from base64 import b64encode
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from tapgate import clock

#: An amount in major units. Floats are not accepted: they cannot represent 0.1 exactly.
Money = str | Decimal
#: A date in the platform's time zone.
DateLike = str | date
#: A time with a time zone, or a date.
DateTimeLike = str | date | datetime


def encode_amount(amount: Money) -> str:
    """Encode an amount without an exponent: `Decimal("1E+3")` becomes `"1000"`.

    The gateway validates the value.
    """
    if isinstance(amount, str):
        return amount
    if not isinstance(amount, Decimal):
        raise TypeError(f"an amount must be a str or a Decimal, not {type(amount).__name__}")
    if not amount.is_finite():
        raise ValueError("an amount must be finite")
    return format(amount, "f")


def encode_optional_amount(amount: Money | None) -> str | None:
    return None if amount is None else encode_amount(amount)


def encode_date(value: DateLike) -> str:
    if isinstance(value, datetime):
        raise TypeError("a date must be a date or a str, not a datetime")
    return value.isoformat() if isinstance(value, date) else value


def encode_optional_date(value: DateLike | None) -> str | None:
    return None if value is None else encode_date(value)


def encode_optional_datetime(value: DateTimeLike | None) -> str | None:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a datetime must have a time zone")
        return clock.format_rfc3339(value)
    return value.isoformat() if isinstance(value, date) else value


_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def encode_image(content: bytes) -> str:
    """Encode a JPEG or PNG file as a data URI. The gateway validates the image."""
    subtype = "png" if content.startswith(_PNG_SIGNATURE) else "jpeg"
    return f"data:image/{subtype};base64,{b64encode(content).decode()}"


def omit_none(**fields: Any) -> dict[str, Any]:
    """Return the fields that are not None.

    A trailing `_` in a name is removed, so names that are Python keywords can be passed.
    """
    return {name.removesuffix("_"): value for name, value in fields.items() if value is not None}
