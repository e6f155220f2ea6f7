"""From the bytes of a request to a checked value: types first (400), then values (422).

No answer repeats what was submitted. The usual request takes the short way through the compiled
decoder; what it refuses is looked at again, slowly, for the two things it cannot know: null is as
absent, and a lone surrogate is a bad value rather than bad JSON.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, get_args, get_origin

import msgspec

from tapgate.edge import percent
from tapgate.edge.checks import Check, compiled, is_struct, rule_and_type
from tapgate.edge.fields import Unacceptable
from tapgate.errors import ApiError, Code

_SHOWN_TYPES = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "an array",
}

#: NUL is refused by every rule with the same sentence, so it stands in for a lone surrogate.
_SURROGATES_AS_NUL = dict.fromkeys(range(0xD800, 0xE000), "\\u0000")


class BodyReader:
    """Reads the JSON bodies of one type."""

    def __init__(
        self, kind: type[msgspec.Struct], currency: str, *, invalid: Code = Code.VALIDATION_FAILED
    ) -> None:
        self._kind = kind
        self._decoder = msgspec.json.Decoder(kind)
        self._check: Check = compiled(kind, currency) or (lambda value: value)
        self._may_be_empty = not any(field.required for field in msgspec.structs.fields(kind))
        self._invalid = invalid

    def read(self, body: bytes, require: Callable[[Any], None] | None = None) -> Any:
        """`require` refuses what is missing, before any value is looked at."""
        try:
            decoded = self._decoded(body)
            if require is not None:
                require(decoded)
            return self._check(decoded)
        except msgspec.ValidationError as error:
            _refuse(_type_problem(str(error)), Code.INVALID_REQUEST)
        except Unacceptable as refusal:
            _refuse(refusal.problems, self._invalid)
        except RecursionError:
            _not_json("is nested too deeply")
        except UnicodeDecodeError:
            _not_json("is not UTF-8")
        except ValueError:
            _not_json("is not JSON")

    def _decoded(self, body: bytes) -> Any:
        if not body and self._may_be_empty:
            return self._kind()
        if not body.isascii():
            body.decode()  # the decoder does not look into what it skips
        try:
            return self._decoder.decode(body)
        except msgspec.DecodeError:
            if b"null" not in body and b"\\u" not in body:
                raise
        return msgspec.convert(_without_nulls(_any_json(body), self._kind), self._kind)


def _any_json(body: bytes) -> Any:
    """Any JSON, with NUL where a lone surrogate was."""
    try:
        return msgspec.json.decode(body)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        value = json.loads(body.decode(), parse_constant=_no_constant)
        text = json.dumps(value, ensure_ascii=False).translate(_SURROGATES_AS_NUL)
        return msgspec.json.decode(text)


def _without_nulls(value: Any, kind: Any) -> Any:
    """Null is as absent wherever a field is declared; inside free-form objects it is a value."""
    _, bare = rule_and_type(kind)
    if isinstance(value, dict) and is_struct(bare):
        types = {field.encode_name: field.type for field in msgspec.structs.fields(bare)}
        return {
            name: _without_nulls(member, types[name])
            for name, member in value.items()
            if member is not None and name in types
        }
    if isinstance(value, list) and get_origin(bare) is list:
        return [_without_nulls(item, get_args(bare)[0]) for item in value]
    return value


def _no_constant(_name: str) -> NoReturn:
    raise ValueError("NaN and Infinity are not JSON")


class QueryReader:
    """Reads the query strings of one type. Whatever is wrong with one is a bad value: 422."""

    def __init__(self, kind: type[msgspec.Struct], currency: str) -> None:
        self._kind = kind
        self._check: Check = compiled(kind, currency) or (lambda value: value)
        self._known = frozenset(field.encode_name for field in msgspec.structs.fields(kind))

    def read(self, raw: bytes) -> Any:
        try:
            values = self._values(raw.decode("latin-1")) if raw else {}
            return self._check(msgspec.convert(values, self._kind, strict=False))
        except msgspec.ValidationError as error:
            _refuse(_type_problem(str(error)), Code.VALIDATION_FAILED)
        except Unacceptable as refusal:
            _refuse(refusal.problems, Code.VALIDATION_FAILED)

    def _values(self, raw: str) -> dict[str, str]:
        values: dict[str, str] = {}
        for part in raw.replace("+", " ").split("&"):
            shown_name, _, shown_value = part.partition("=")
            name, value = percent.decoded(shown_name), percent.decoded(shown_value)
            if name is None or value is None:
                raise Unacceptable({"query": "is not valid percent-encoded UTF-8"})
            if name not in self._known:
                continue
            if name in values:
                raise Unacceptable({name: "must not be given more than once"})
            values[name] = value
        return values


def _type_problem(message: str) -> dict[str, str]:
    """What msgspec says about a type, in words for a client, without any value it may name."""
    what, _, where = message.partition(" - at `$")
    path = where.rstrip("`").lstrip(".")
    if what.startswith("Object missing required field `"):
        name = what.split("`")[1]
        return {f"{path}.{name}" if path else name: "is required"}
    expected = what.split("`")[1].split(" | ")[0] if what.startswith("Expected `") else ""
    must_be = _SHOWN_TYPES.get(expected)
    return {path or "body": f"must be {must_be}" if must_be else "is out of range"}


def _not_json(sentence: str) -> NoReturn:
    _refuse({"body": sentence}, Code.INVALID_REQUEST)


def _refuse(problems: Mapping[str, str], code: Code) -> NoReturn:
    message = "; ".join(f"{path} {sentence}" for path, sentence in problems.items())
    raise ApiError(code, message, details={"fields": problems}) from None
