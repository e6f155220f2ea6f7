"""Validation of request values; errors name the field but never repeat its value."""

import re
from typing import Final
from urllib.parse import parse_qsl

from tapgate.messenger.web import invalid
from tapgate.phone_numbers import normalize_phone_number
from tapgate_client.errors import ApiError, Code
from tapgate_client.phone_numbers import PhoneNumberError

_E164_PATTERN: Final = re.compile(r"\+[1-9][0-9]{6,14}", re.ASCII)
_INVALID_PHONE_TEXT: Final = "must be a phone number in E.164 format, such as +23276123456"


def require_text(value: str, name: str, *, max_length: int) -> str:
    """Return the text; raise an error if it is blank, too long or contains NUL."""
    if not value.strip():
        raise invalid(f"{name} is required")
    if len(value) > max_length:
        raise invalid(f"{name} must have at most {max_length} characters")
    if "\0" in value:
        raise invalid(f"{name} must not contain NUL")
    return value


def parse_phone(value: str, name: str, *, code: Code = Code.INVALID_REQUEST) -> str:
    """Return the number in E.164 form. Accepts every number that the gateway accepts."""
    if _E164_PATTERN.fullmatch(value) is None:
        raise ApiError(code, f"{name} {_INVALID_PHONE_TEXT}")
    try:
        return normalize_phone_number(value)
    except PhoneNumberError as error:
        raise ApiError(code, f"{name} {error}") from None


def parse_query(raw: bytes) -> dict[str, str]:
    """Return the first value of each parameter; `+` decodes to a space."""
    pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True)
    return dict(reversed(pairs))
