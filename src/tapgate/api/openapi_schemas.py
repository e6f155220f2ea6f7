"""JSON Schemas of requests and responses: types from msgspec, constraints from the rules."""

from collections.abc import Iterable, Iterator
from types import NoneType
from typing import Annotated, Any, Final, get_args, get_origin

import msgspec

from tapgate.api.examples import build_example
from tapgate.http import json_schema
from tapgate.http.checks import get_rule_and_type, is_struct
from tapgate.http.json_schema import Schema, build_reference, get_component_name
from tapgate.schemas.fields import Choice, Rule

#: Formats of response fields by name. Fields named `*_at` or `*_until` are `date-time` too.
_RESPONSE_FORMATS: Final = {
    "as_of": "date-time",
    "date": "date",
    "date_of_birth": "date",
    "email": "email",
    "start": "date-time",
    "statement_url": "uri-reference",
    "url": "uri",
}


class Schemas:
    """The schemas of all types in requests (`request_types`) and responses (`response_types`)."""

    def __init__(
        self, request_types: Iterable[Any], response_types: Iterable[Any], currency: str
    ) -> None:
        self._currency = currency
        inputs = list(
            dict.fromkeys(struct for kind in request_types for struct in _iter_structs(kind))
        )
        response_types = list(response_types)
        outputs = [
            item for kind in response_types for item in _iter_structs(kind) if item not in inputs
        ]
        kinds = dict.fromkeys([*inputs, *outputs, *response_types])
        self._references, self.components = json_schema.build_components(list(kinds))
        self._enums: dict[str, Choice] = {}
        for struct in inputs:
            self._describe_request(struct)
        for kind in dict.fromkeys(outputs):
            self._describe_response(kind)
        for name, choice in sorted(self._enums.items()):
            self.components[name] = {"title": name, "type": "string", **choice.to_json_schema()}

    def get(self, kind: Any) -> Schema:
        return self._references[kind]

    def pop_query_parameters(self, struct: type[msgspec.Struct]) -> dict[str, Schema]:
        """Return the parameters of a query struct and remove the struct from the components."""
        properties: dict[str, Schema] = self.components.pop(get_component_name(self.get(struct)))[
            "properties"
        ]
        return json_schema.tidy_query(properties)

    def _describe_request(self, struct: type[msgspec.Struct]) -> None:
        component = self.components[get_component_name(self.get(struct))]
        for field in msgspec.structs.fields(struct):
            schema = component["properties"][field.encode_name]
            self._add_rule(schema, field.type, field.encode_name)
        json_schema.tidy_request(component)

    def _describe_response(self, kind: Any) -> None:
        component = self.components[get_component_name(self.get(kind))]
        for field in msgspec.structs.fields(kind):
            schema = component["properties"][field.encode_name]
            self._add_response_rules(schema, field.type, field.encode_name)
        json_schema.tidy_response(component, kind)

    def _add_rule(self, schema: Schema, kind: Any, name: str) -> None:
        rule, bare = get_rule_and_type(kind)
        if is_struct(bare):
            return
        for choice in _list_non_null(schema):
            if get_origin(bare) is list:
                self._add_rule(choice["items"], get_args(bare)[0], name)
            if rule is not None:
                self._apply_rule(choice, rule)
        schema.setdefault("examples", [build_example(kind, name)])

    def _add_response_rules(self, schema: Schema, kind: Any, name: str) -> None:
        """Add the rules that a response field declares and the format that its name implies."""
        rules = list(_iter_rules(kind))
        for choice in _list_non_null(schema):
            for rule in rules:
                self._apply_rule(choice, rule)
            if "items" in choice:
                self._add_response_rules(choice["items"], _get_item_type(kind), "")
            if choice.get("type") == "string" and "format" not in choice:
                choice.update(_infer_format(name))

    def _apply_rule(self, schema: Schema, rule: Rule) -> None:
        rule = rule.for_currency(self._currency)
        if not isinstance(rule, Choice) or rule.name is None:
            schema.update(rule.to_json_schema())
            return
        known = self._enums.setdefault(rule.name, rule)
        if known.values != rule.values:
            raise TypeError(f"two different enums are named {rule.name}")
        schema.pop("type", None)
        schema.update(build_reference(rule.name))


def _list_non_null(schema: Schema) -> list[Schema]:
    return [choice for choice in schema.get("anyOf", [schema]) if choice.get("type") != "null"]


def _infer_format(name: str) -> Schema:
    found = "date-time" if name.endswith(("_at", "_until")) else _RESPONSE_FORMATS.get(name)
    return {} if found is None else {"format": found}


def _iter_union_members(kind: Any) -> Iterator[Any]:
    """Yield the members of a union except None and `UnsetType`; yield any other type itself."""
    origin = get_origin(kind)
    if origin is None or origin in (Annotated, list, dict) or json_schema.get_struct(kind):
        yield kind
        return
    for member in get_args(kind):
        if member not in (NoneType, msgspec.UnsetType):
            yield from _iter_union_members(member)


def _iter_rules(kind: Any) -> Iterator[Rule]:
    for member in _iter_union_members(kind):
        if get_origin(member) is Annotated:
            yield from (note for note in get_args(member)[1:] if isinstance(note, Rule))


def _get_item_type(kind: Any) -> Any:
    for member in _iter_union_members(kind):
        bare = get_args(member)[0] if get_origin(member) is Annotated else member
        if get_origin(bare) is list:
            return get_args(bare)[0]
    return Any


def _iter_structs(kind: Any) -> Iterator[Any]:
    """Yield all structs in a type, including nested structs."""
    for member in _iter_union_members(kind):
        bare = get_args(member)[0] if get_origin(member) is Annotated else member
        if json_schema.get_struct(bare):
            yield bare
            for field in msgspec.structs.fields(bare):
                yield from _iter_structs(field.type)
        elif get_origin(bare) is list:
            yield from _iter_structs(get_args(bare)[0])
