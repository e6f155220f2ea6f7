"""Argument types of operations, each with the function that encodes it for the gateway API."""

from base64 import b64encode
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, get_args, get_origin

import msgspec

from tapgate_client import clock
from tapgate_client.schemas.card_proofs import CardProof

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def encode_amount(amount: str | Decimal) -> str:
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


def encode_threshold(value: str | Decimal | int) -> str | int:
    return value if isinstance(value, int) else encode_amount(value)


def encode_date(value: str | date) -> str:
    if isinstance(value, datetime):
        raise TypeError("a date must be a date or a str, not a datetime")
    return value.isoformat() if isinstance(value, date) else value


def encode_datetime(value: str | date | datetime) -> str:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a datetime must have a time zone")
        return clock.format_rfc3339(value)
    return value.isoformat() if isinstance(value, date) else value


def encode_image(content: bytes) -> str:
    """Encode a JPEG or PNG file as a data URI. The gateway validates the image."""
    subtype = "png" if content.startswith(_PNG_SIGNATURE) else "jpeg"
    return f"data:image/{subtype};base64,{b64encode(content).decode()}"


def encode_card_proof(proof: str | CardProof) -> Any:
    """Encode a tap's proof, or the URL that a card returned."""
    return {"url": proof} if isinstance(proof, str) else msgspec.to_builtins(proof)


#: An amount in major units. Floats are not accepted: they cannot represent 0.1 exactly.
Money = Annotated[str | Decimal, encode_amount]
#: An amount, or a count for some types of compliance rules.
Threshold = Annotated[str | Decimal | int, encode_threshold]
#: A date in the platform's time zone.
DateLike = Annotated[str | date, encode_date]
#: A time with a time zone, or a date.
DateTimeLike = Annotated[str | date | datetime, encode_datetime]
#: The content of a JPEG or PNG file.
Image = Annotated[bytes, encode_image]
#: The URL that a card returned at a tap, or `picc_data` and `cmac` of it.
CardProofLike = Annotated[str | CardProof, encode_card_proof]
#: An integer that is part of the path.
PathNumber = Annotated[int, str]


def get_encoder(annotation: Any) -> Callable[[Any], Any] | None:
    """Return the function that encodes arguments with this annotation, such as `Money | None`."""
    for option in (annotation, *get_args(annotation)):
        if get_origin(option) is Annotated:
            encode: Callable[[Any], Any] = option.__metadata__[0]
            return encode
    return None
