"""Parsing and validation of requests; errors name the field but never repeat its value."""

import re
from typing import Final, NoReturn, TypeVar
from urllib.parse import parse_qsl

import msgspec
import phonenumbers

from tapgate.messenger.routes.route import HttpError

S = TypeVar("S", bound=msgspec.Struct)

_E164_PATTERN: Final = re.compile(r"\+[1-9][0-9]{6,14}", re.ASCII)
_INVALID_PHONE_TEXT: Final = "must be a phone number in E.164 format, such as +23276123456"

_TYPE_LABELS: Final = {
    "str": "a string",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "an array",
}


def decode_body(kind: type[S], body: bytes) -> S:
    """Decode and validate a body. Unknown fields are ignored; optional fields accept null."""
    try:
        if not body.isascii():
            body.decode()  # the decoder does not check the encoding of skipped fields
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        _reject(_describe_error(str(error)))
    except UnicodeDecodeError:
        _reject("The body is not UTF-8")
    except RecursionError:
        _reject("The body is nested too deeply")
    except ValueError:
        _reject("The body is not JSON")


def require_text(value: str, name: str, *, max_length: int) -> str:
    """Return the text; raise `HttpError` if it is blank, too long or contains NUL."""
    if not value.strip():
        raise HttpError(400, f"{name} is required")
    if len(value) > max_length:
        raise HttpError(400, f"{name} must have at most {max_length} characters")
    if "\0" in value:
        raise HttpError(400, f"{name} must not contain NUL")
    return value


def parse_phone(value: str, name: str, *, status: int = 400) -> str:
    """Return the number in E.164 form.

    Accepts every number that the gateway accepts, because the gateway may send messages to any of
    them.
    """
    return _format_e164(_parse_number(value, name, status))


def parse_possible_phone(value: str, name: str) -> str:
    """Return the number in E.164 form; its length must be valid for its country."""
    number = _parse_number(value, name, 400)
    if not phonenumbers.is_possible_number(number):
        raise HttpError(400, f"{name} has the wrong length for its country")
    return _format_e164(number)


def _parse_number(value: str, name: str, status: int) -> phonenumbers.PhoneNumber:
    if _E164_PATTERN.fullmatch(value) is None:
        raise HttpError(status, f"{name} {_INVALID_PHONE_TEXT}")
    try:
        return phonenumbers.parse(value)
    except phonenumbers.NumberParseException:
        raise HttpError(status, f"{name} must start with a valid country code") from None


def _format_e164(number: phonenumbers.PhoneNumber) -> str:
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def parse_query(raw: bytes) -> dict[str, str]:
    """Return the first value of each parameter; `+` decodes to a space."""
    pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True)
    return dict(reversed(pairs))


def _describe_error(message: str) -> str:
    """Translate a msgspec validation message, leaving out any value it contains."""
    problem, _, location = message.partition(" - at `$")
    path = location.rstrip("`").lstrip(".")
    if not path and problem.startswith("Expected `object`"):
        return "The body must be a JSON object"
    if path and not path.endswith("]") and problem.endswith("got `null`"):
        return f"{path} is required"
    if problem.startswith("Object missing required field `"):
        name = problem.split("`")[1]
        return f"{path}.{name} is required" if path else f"{name} is required"
    expected = problem.split("`")[1].split(" | ")[0] if problem.startswith("Expected `") else ""
    label = _TYPE_LABELS.get(expected)
    return f"{path} must be {label}" if label else f"{path} is out of range"


def _reject(message: str) -> NoReturn:
    raise HttpError(400, message) from None
