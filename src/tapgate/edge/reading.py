"""From the bytes of a request to a checked value: types first (400), then values (422).

No error repeats what was submitted. The usual request takes the short way through the compiled
decoder. What it refuses is decoded a second time where that can be for one of the two things it
does not know: null is as absent, and a lone surrogate is a bad value rather than bad JSON. Both
decoders build only declared fields, so neither costs more than the size of the body.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NoReturn, get_args, get_origin

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

#: Above this, a lone surrogate makes a body bad JSON: each escape costs a call to find it.
_MAX_REPAIRED_BYTES: Final = 16 * 1024
#: One escape in JSON text; group 1 is what stays: a surrogate pair, or no Unicode escape at all.
_SURROGATE: Final = re.compile(
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\[^u])"
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
#: Every rule refuses NUL with the sentence that also names lone surrogates.
_NUL: Final = b"\\u0000"

_MAX_PARAMETERS: Final = 100


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
        if b"\\u" in body and len(body) <= _MAX_REPAIRED_BYTES:
            body = _SURROGATE.sub(lambda match: match[1] or _NUL, body)
        # What is null has its default, and is left out of the fields that are converted.
        fields = msgspec.to_builtins(msgspec.json.decode(body, type=_nullable(self._kind)))
        return msgspec.convert(fields, self._kind)


@cache
def _nullable(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """Return a type with the same fields, of which each may be null or absent."""
    fields = [
        (
            one.name,
            _with_nullable_fields(one.type) | None,
            msgspec.field(default=None, name=one.encode_name),
        )
        for one in msgspec.structs.fields(kind)
    ]
    return msgspec.defstruct(kind.__name__, fields, omit_defaults=True)


def _with_nullable_fields(kind: Any) -> Any:
    _, bare = rule_and_type(kind)
    if is_struct(bare):
        return _nullable(bare)
    if get_origin(bare) is list:
        return list[_with_nullable_fields(get_args(bare)[0])]  # type: ignore[misc]
    return bare


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
        parts = raw.replace("+", " ").split("&", _MAX_PARAMETERS)
        if len(parts) > _MAX_PARAMETERS:
            raise Unacceptable({"query": f"must not have more than {_MAX_PARAMETERS} parameters"})
        for part in parts:
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
