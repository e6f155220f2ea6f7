"""OpenAPI examples for requests, path parameters and responses, with consistent IDs and names."""

import re
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

import msgspec

from tapgate.http.endpoint import Endpoint
from tapgate.http.field_checks import get_rule_and_type, is_struct
from tapgate.http.json_schema import find_text_type, get_struct, iter_rules, iter_union_members
from tapgate_client import ids, money
from tapgate_client.schemas.fields import IdempotencyKeyRule, TextRule
from tapgate_client.schemas.values import Example

_EXAMPLE_ID: Final = 1 << 58
#: Example for text about which nothing is known.
GENERIC_TEXT: Final = "Done"
#: ID prefixes by the last word in a field name, path segment or struct name. It is the last word in
#: the constant name, or another word for the record.
_ID_PREFIXES: Final = {
    name.lower().rpartition("_")[2]: prefix
    for name, prefix in vars(ids).items()
    if isinstance(prefix, str) and name.isupper()
} | {
    "actor": ids.ADMIN,
    "holder": ids.SUBSCRIBER,
    "me": ids.ADMIN,
    "party": ids.SUBSCRIBER,
    "resource": ids.SUBSCRIBER,
    "sender": ids.SUBSCRIBER,
    "user": ids.SUBSCRIBER,
}

#: Examples of path parameters that are not IDs, by the preceding path segment.
_PATH_EXAMPLES: Final = {
    "account-rules": "1",
    "cards": "TAP-000001",
    "payments": IdempotencyKeyRule.example,
}

_AMOUNT_PATTERN: Final = re.compile(r"[0-9]+\.[0-9]{2}")


def build_example(kind: Any, name: str = "") -> Any:
    """Return a valid example value for a request type."""
    declared = _get_declared_example(kind)
    rule, bare = get_rule_and_type(kind)
    if declared is not None:
        return declared
    if is_struct(bare):
        names = [(field.encode_name, field.type) for field in msgspec.structs.fields(bare)]
        omitted, declared = _list_omitted(bare), _get_struct_examples(bare)
        return {
            name: declared[name] if name in declared else build_example(type_, name)
            for name, type_ in names
            if name not in omitted
        }
    if get_origin(bare) is list:
        return [build_example(get_args(bare)[0], name)]
    if isinstance(rule, TextRule) and rule.example == TextRule.example:
        return _find_id_example(name) or rule.example
    return True if bare is bool else 1.5 if rule is None else rule.example


def get_path_example(endpoint: Endpoint, name: str) -> str:
    """Return an example for the path parameter `{name}`, or the name if there is none."""
    if name in endpoint.id_prefixes:
        return ids.encode(endpoint.id_prefixes[name], _EXAMPLE_ID)
    segment = endpoint.path.partition(f"/{{{name}}}")[0].rpartition("/")[2]
    found = _find_id_example(f"{segment.removesuffix('s')}_id" if name == "id" else name)
    return _PATH_EXAMPLES.get(segment) or found or name


def _list_omitted(struct: Any) -> Sequence[str]:
    """Return the fields that a struct omits from its examples."""
    omitted: Sequence[str] = getattr(struct, "OMITTED_IN_EXAMPLES", ())
    return omitted


def _get_struct_examples(struct: Any) -> Mapping[str, Any]:
    """Return the examples that a struct declares for its fields."""
    examples: Mapping[str, Any] = getattr(struct, "EXAMPLES", {})
    return examples


def _get_declared_example(kind: Any) -> Any:
    """Return the example that a field declares with `Example`, or None."""
    if get_origin(kind) is Annotated:
        notes = get_args(kind)[1:]
        return next((note.value for note in notes if isinstance(note, Example)), None)
    if get_origin(kind) not in (Union, UnionType):
        return None
    choices = [_get_declared_example(choice) for choice in get_args(kind)]
    return next((choice for choice in choices if choice is not None), None)


def _find_id_example(name: str, owner: type | None = None) -> str | None:
    """Return an example for an ID such as `api_key_id` or a record's `id`, or None."""
    if name == "id" and owner is not None:
        name = owner.__name__.removesuffix("Record").removesuffix("WithSecret")
        noun = re.findall("[A-Z][a-z]+", name)[-1].lower()
    elif name.endswith("_id"):
        noun = re.split("[-_]", name.removesuffix("_id"))[-1]
    else:
        return None
    prefix = _ID_PREFIXES.get(noun)
    return None if prefix is None else ids.encode(prefix, _EXAMPLE_ID + name.startswith("to_"))


def build_response_example(kind: Any, owner: type | None = None, name: str = "") -> Any:
    """Return an example for a response type, or for the field `name` in the struct `owner`."""
    examples = _get_struct_examples(owner)
    if name in examples:
        return examples[name]
    declared = _get_declared_example(kind)
    bare = next(iter_union_members(kind))
    if get_origin(bare) is Annotated:
        bare = get_args(bare)[0]
    if declared is not None:
        return _format_amount(owner, declared)
    struct = get_struct(bare)
    if struct is not None:
        return _build_object(bare, struct)
    if get_origin(bare) is list:
        return [build_response_example(get_args(bare)[0], owner, name)]
    return _build_scalar(kind, bare, owner, name)


def _build_scalar(kind: Any, bare: Any, owner: type | None, name: str) -> Any:
    rule, text_type = next(iter_rules(kind), None), find_text_type(kind)
    if rule is not None:
        return rule.example
    if text_type is not None and text_type.example is not None:
        return _format_amount(owner, text_type.example)
    if bare is str:
        unknown = None if NoneType in get_args(kind) else GENERIC_TEXT
        return _find_id_example(name, owner) or unknown
    return {bool: False, int: 1, float: 1.0}.get(bare, {})


def _build_object(kind: Any, struct: type[msgspec.Struct]) -> dict[str, Any]:
    omitted = _list_omitted(struct)
    return {
        field.encode_name: build_response_example(field.type, struct, field.encode_name)
        if field.default in (msgspec.NODEFAULT, msgspec.UNSET, None)
        else field.default
        for field in msgspec.structs.fields(kind)
        if field.encode_name not in omitted and not _is_flag(field)
    }


def _is_flag(field: msgspec.structs.FieldInfo) -> bool:
    """Return whether a field is true or absent."""
    return field.default is msgspec.UNSET and bool in get_args(field.type)


def _format_amount(owner: type | None, value: Any) -> Any:
    """Format amounts in receipts and card checks for display, with the currency."""
    is_formatted = owner is not None and owner.__name__.endswith(("Receipt", "VerifyCardResponse"))
    if is_formatted and _AMOUNT_PATTERN.fullmatch(str(value)):
        return money.format_money(money.parse(value, "SLE"), "SLE")
    return value
