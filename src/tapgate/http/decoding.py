"""Decodes and validates request bodies and queries.

In a body, types are checked first (400), then values (422). Errors never repeat submitted values.

msgspec's decoder for the body type handles nearly every request. It does not implement two API
rules: null means the same as an absent field, and a lone surrogate is an invalid value rather than
malformed JSON. If a failure may be due to one of these rules, the body is decoded again with
nullable fields. Both passes build only declared fields, so the cost is bounded by the body size.

An unknown enum value is an invalid value too, not a wrong type. Another pass with open enums then
reports every invalid field.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NoReturn, get_args, get_origin

import msgspec

from tapgate.http.field_checks import compile_check, get_rule_and_type, is_enum, is_struct
from tapgate.http.router import decode_percent
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.fields import InvalidValueError
from tapgate_client.schemas.open_enums import is_unknown_value, open_enums

_TYPE_NAMES = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "an array",
}

#: Larger bodies with lone surrogates are rejected as malformed JSON, to bound the cost of `sub`.
_MAX_REPAIRED_BYTES: Final = 16 * 1024
#: Matches lone surrogates. Group 1 matches what to keep: surrogate pairs and non-`\u` escapes.
_SURROGATE_PATTERN: Final = re.compile(
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\[^u])"
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
#: Replaces a lone surrogate, because every rule for strings rejects NUL.
_NUL: Final = b"\\u0000"

_MAX_PARAMETERS: Final = 100
#: Names that are repeated in errors. Keys and tokens have digits or are longer.
_PARAMETER_NAME_PATTERN: Final = re.compile(r"[A-Za-z][A-Za-z_.-]{0,39}")


class BodyDecoder:
    """JSON body decoder for one type. Without a currency, only types are checked."""

    def __init__(
        self,
        kind: type[msgspec.Struct],
        currency: str | None,
        *,
        invalid: Code = Code.VALIDATION_FAILED,
    ) -> None:
        self._kind = kind
        self._currency = currency
        self._decoder = msgspec.json.Decoder(kind)
        self._check = compile_check(kind, currency) if currency else None
        self._can_be_empty = not any(field.required for field in msgspec.structs.fields(kind))
        self._invalid_code = invalid

    def decode(self, body: bytes, require: Callable[[Any], None] | None = None) -> Any:
        """Decode and validate a body.

        `require` runs once all types are valid and before any value is checked. It raises if input
        is missing or inconsistent.
        """
        try:
            decoded = self._decode(body)
            if require is not None:
                require(decoded)
            if type(decoded) is not self._kind:
                _raise_unknown_values(decoded, self._currency)
            return decoded if self._check is None else self._check(decoded)
        except msgspec.ValidationError as error:
            _raise_invalid(_describe_type_error(str(error)), Code.INVALID_REQUEST)
        except InvalidValueError as error:
            _raise_invalid(error.problems, self._invalid_code)
        except RecursionError:
            _raise_not_json("is nested too deeply")
        except UnicodeDecodeError:
            _raise_not_json("must be valid UTF-8")
        except ValueError:
            _raise_not_json("must be valid JSON")

    def _decode(self, body: bytes) -> Any:
        if not body and self._can_be_empty:
            return self._kind()
        if not body.isascii():
            body.decode()  # the decoder does not validate UTF-8 in fields that it skips
        try:
            return self._decoder.decode(body)
        except msgspec.DecodeError as error:
            if b"null" not in body and b"\\u" not in body and not is_unknown_value(error):
                raise
        if self._check is not None and b"\\u" in body and len(body) <= _MAX_REPAIRED_BYTES:
            body = _SURROGATE_PATTERN.sub(lambda match: match[1] or _NUL, body)
        # `to_builtins` omits null fields, so `convert` uses their defaults.
        fields = msgspec.to_builtins(msgspec.json.decode(body, type=_make_nullable(self._kind)))
        return _convert(fields, self._kind, self._currency)


def _convert(
    fields: Any, kind: type[msgspec.Struct], currency: str | None, *, strict: bool = True
) -> Any:
    """Convert fields to a type, or to its open type if an enum does not have one of the values."""
    try:
        return msgspec.convert(fields, kind, strict=strict)
    except msgspec.ValidationError as error:
        if currency is None or not is_unknown_value(error):
            raise
    return msgspec.convert(fields, open_enums(kind), strict=strict)


def _raise_unknown_values(decoded: Any, currency: str | None) -> None:
    """Raise InvalidValueError for all invalid values in a struct with open enums."""
    assert currency is not None
    check = compile_check(type(decoded), currency)
    assert check is not None
    check(decoded)
    raise AssertionError("a struct with open enums has an unknown value")


@cache
def _make_nullable(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """Return a type with the same fields, all nullable and optional."""
    fields = [
        (
            item.name,
            _make_fields_nullable(item.type) | None,
            msgspec.field(default=None, name=item.encode_name),
        )
        for item in msgspec.structs.fields(kind)
    ]
    return msgspec.defstruct(kind.__name__, fields, omit_defaults=True)


def _make_fields_nullable(kind: Any) -> Any:
    _, bare = get_rule_and_type(kind)
    if is_struct(bare):
        return _make_nullable(bare)
    if get_origin(bare) is list:
        return list[_make_fields_nullable(get_args(bare)[0])]  # type: ignore[misc]
    return str if is_enum(bare) else bare


def require_declared_parameters(raw: bytes, names: frozenset[str]) -> None:
    """Reject a query with other parameters, for handlers that parse the query or receive none."""
    for part in raw.decode("latin-1").replace("+", " ").split("&", _MAX_PARAMETERS):
        name = decode_percent(part.partition("=")[0])
        if part and name not in names:
            _raise_invalid(_describe_unknown_parameter(name or ""), Code.VALIDATION_FAILED)


class QueryDecoder:
    """Query string decoder for one type. Every error is an invalid value (422).

    A parameter that is not in `accepted_names` is an error, because a misspelled filter would
    otherwise return everyone's records. None accepts and ignores any other parameter.
    """

    def __init__(
        self,
        kind: type[msgspec.Struct],
        currency: str | None,
        accepted_names: frozenset[str] | None = None,
    ) -> None:
        self._kind = kind
        self._currency = currency
        self._accepted_names = accepted_names
        self._check = compile_check(kind, currency) if currency else None
        self._field_names = frozenset(field.encode_name for field in msgspec.structs.fields(kind))

    def decode(self, raw: bytes) -> Any:
        try:
            values = self._parse_values(raw.decode("latin-1")) if raw else {}
            query = _convert(values, self._kind, self._currency, strict=False)
            if type(query) is not self._kind:
                _raise_unknown_values(query, self._currency)
            return query if self._check is None else self._check(query)
        except msgspec.ValidationError as error:
            _raise_invalid(_describe_type_error(str(error)), Code.VALIDATION_FAILED)
        except InvalidValueError as error:
            _raise_invalid(error.problems, Code.VALIDATION_FAILED)

    def _parse_values(self, raw: str) -> dict[str, str]:
        values: dict[str, str] = {}
        parts = raw.replace("+", " ").split("&", _MAX_PARAMETERS)
        if len(parts) > _MAX_PARAMETERS:
            raise InvalidValueError({"query": f"must have at most {_MAX_PARAMETERS} parameters"})
        for part in parts:
            raw_name, _, raw_value = part.partition("=")
            name, value = decode_percent(raw_name), decode_percent(raw_value)
            if name is None or value is None:
                raise InvalidValueError({"query": "must be valid percent-encoded UTF-8"})
            if name not in self._field_names:
                if part and self._accepted_names is not None and name not in self._accepted_names:
                    raise InvalidValueError(_describe_unknown_parameter(name))
                continue
            if name in values:
                raise InvalidValueError({name: "must not appear more than once"})
            values[name] = value
        return values


def _describe_unknown_parameter(name: str) -> dict[str, str]:
    """Return the error for an unknown parameter. A name that may be a secret is not repeated."""
    if _PARAMETER_NAME_PATTERN.fullmatch(name):
        return {name: "is not a parameter of this endpoint"}
    return {"query": "has a parameter that this endpoint does not have"}


def _describe_type_error(message: str) -> dict[str, str]:
    """Translate a msgspec type error for the client, without any submitted value."""
    problem, _, location = message.partition(" - at `$")
    path = location.rstrip("`").lstrip(".")
    if problem.startswith("Object missing required field `"):
        name = problem.split("`")[1]
        return {f"{path}.{name}" if path else name: "is required"}
    expected = problem.split("`")[1] if problem.startswith("Expected `") else ""
    name = "float" if "float" in expected else expected.partition(" | ")[0]
    type_name = _TYPE_NAMES.get(name)
    return {path or "body": f"must be {type_name}" if type_name else "is out of range"}


def _raise_not_json(message: str) -> NoReturn:
    _raise_invalid({"body": message}, Code.INVALID_REQUEST)


def _raise_invalid(problems: Mapping[str, str], code: Code) -> NoReturn:
    message = "; ".join(f"{path} {text}" for path, text in problems.items())
    raise ApiError(code, message, details={"fields": problems}) from None
