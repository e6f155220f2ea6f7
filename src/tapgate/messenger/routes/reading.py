"""From a request's bytes to a checked body. A refusal names the field and repeats no value."""

import re
from typing import Final, NoReturn, TypeVar
from urllib.parse import parse_qsl

import msgspec
import phonenumbers

from tapgate.messenger.routes.route import Refusal

S = TypeVar("S", bound=msgspec.Struct)

_E164: Final = re.compile(r"\+[1-9][0-9]{6,14}", re.ASCII)
_NOT_A_PHONE: Final = "must be a phone number in E.164 form, such as +23276123456"

_SHOWN_TYPES: Final = {
    "str": "a string",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "an array",
}


def read(kind: type[S], body: bytes) -> S:
    """Decode a body in one pass. Unknown fields are skipped; an optional field accepts null."""
    try:
        if not body.isascii():
            body.decode()  # the decoder does not validate what it skips
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        _refuse(_problem(str(error)))
    except UnicodeDecodeError:
        _refuse("The body is not UTF-8")
    except RecursionError:
        _refuse("The body is nested too deeply")
    except ValueError:
        _refuse("The body is not JSON")


def text(value: str, name: str, *, most: int) -> str:
    """A text that is there, can be kept, and is not too long."""
    if not value.strip():
        raise Refusal(400, f"{name} is required")
    if len(value) > most:
        raise Refusal(400, f"{name} must have at most {most} characters")
    if "\0" in value:
        raise Refusal(400, f"{name} must not contain NUL")
    return value


def phone(value: str, name: str, *, status: int = 400) -> str:
    """As the gateway writes it, and whatever it takes: it sends messages to all of them."""
    return _e164(_parsed(value, name, status))


def possible_phone(value: str, name: str) -> str:
    """A number that is as long as those of its country are."""
    number = _parsed(value, name, 400)
    if not phonenumbers.is_possible_number(number):
        raise Refusal(400, f"{name} is not as long as the phone numbers of its country")
    return _e164(number)


def _parsed(value: str, name: str, status: int) -> phonenumbers.PhoneNumber:
    if _E164.fullmatch(value) is None:
        raise Refusal(status, f"{name} {_NOT_A_PHONE}")
    try:
        return phonenumbers.parse(value)
    except phonenumbers.NumberParseException:
        raise Refusal(status, f"{name} is not a phone number of any country") from None


def _e164(number: phonenumbers.PhoneNumber) -> str:
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def query(raw: bytes) -> dict[str, str]:
    """The first value of each name, with `+` for a space."""
    pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True)
    return dict(reversed(pairs))


def _problem(message: str) -> str:
    """Translate msgspec's message about a type, without any value that it may name."""
    what, _, where = message.partition(" - at `$")
    path = where.rstrip("`").lstrip(".")
    if not path and what.startswith("Expected `object`"):
        return "The body must be a JSON object"
    if path and not path.endswith("]") and what.endswith("got `null`"):
        return f"{path} is required"
    if what.startswith("Object missing required field `"):
        name = what.split("`")[1]
        return f"{path}.{name} is required" if path else f"{name} is required"
    expected = what.split("`")[1].split(" | ")[0] if what.startswith("Expected `") else ""
    must_be = _SHOWN_TYPES.get(expected)
    return f"{path} must be {must_be}" if must_be else f"{path} is out of range"


def _refuse(sentence: str) -> NoReturn:
    raise Refusal(400, sentence) from None
