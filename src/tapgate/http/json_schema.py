"""JSON Schemas for requests and responses, in the form that OpenAPI generators support best.

Types come from msgspec, and constraints from the field rules.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import NoneType
from typing import Annotated, Any, Final, get_args, get_origin

import msgspec

from tapgate.http.field_checks import get_rule_and_type, is_enum, is_struct
from tapgate_client.schemas.fields import Choice, Rule, get_enum_rule
from tapgate_client.schemas.values import TextType

Schema = dict[str, Any]

REF_PREFIX: Final = "#/components/schemas/"
_NULL_SCHEMA: Final[Schema] = {"type": "null"}
#: Schema keywords that imply an example.
_SELF_EXPLANATORY: Final = frozenset({"const", "enum", "format"})
_PAGE_NAME: Final = re.compile(r"Page_(\w+?)(?:Record)?_")


class Schemas:
    """Schemas for all types in requests (`request_types`) and responses (`response_types`).

    Without a currency, request field rules are left out: handlers check the values.
    """

    def __init__(
        self,
        request_types: Iterable[Any],
        response_types: Iterable[Any],
        currency: str | None,
        build_example: Callable[[Any, str], Any] | None,
        build_response_example: Callable[[Any, type, str], Any] | None = None,
    ) -> None:
        self._currency = currency
        self._build_example = build_example
        self._build_response_example = build_response_example
        inputs = list(
            dict.fromkeys(struct for kind in request_types for struct in _iter_structs(kind))
        )
        response_types = list(response_types)
        outputs = [
            item for kind in response_types for item in _iter_structs(kind) if item not in inputs
        ]
        kinds = dict.fromkeys([*inputs, *outputs, *response_types])
        self._references, components = build_components(list(kinds))
        # Enums are described by their rules, which keep the order of the values.
        self.components = {name: item for name, item in components.items() if "enum" not in item}
        self._enums: dict[str, Choice] = {}
        for struct in inputs:
            self._describe_request(struct)
        for kind in dict.fromkeys(outputs):
            self._describe_response(kind)
        for component in self.components.values():
            if component.get("required") == []:
                del component["required"]
        for name, choice in sorted(self._enums.items()):
            self.components[name] = {"type": "string", **choice.to_json_schema()}

    def get(self, kind: Any) -> Schema:
        return self._references[kind]

    def pop_query_parameters(self, struct: type[msgspec.Struct]) -> dict[str, Schema]:
        """Return a query struct's parameters and remove the struct from the components."""
        properties: dict[str, Schema] = self.components.pop(get_component_name(self.get(struct)))[
            "properties"
        ]
        return tidy_query(properties)

    def describe_defaults(self) -> None:
        """Move defaults into the descriptions: generators require fields that have a default."""
        for component in self.components.values():
            for schema in component.get("properties", {}).values():
                default = schema.pop("default", None)
                if default is not None:
                    text = default if isinstance(default, str) else _encode(default)
                    parts = (schema.get("description"), f"Default: `{text}`")
                    schema["description"] = ". ".join(filter(None, parts))

    def _describe_request(self, struct: type[msgspec.Struct]) -> None:
        component = self.components[get_component_name(self.get(struct))]
        if self._currency is not None:
            for field in msgspec.structs.fields(struct):
                schema = component["properties"][field.encode_name]
                self._add_rule(schema, field.type, field.encode_name)
        tidy_request(component)

    def _describe_response(self, kind: Any) -> None:
        component = self.components[get_component_name(self.get(kind))]
        for field in msgspec.structs.fields(kind):
            schema = component["properties"][field.encode_name]
            self._add_response_rules(schema, field.type)
            self._add_response_example(schema, kind, field)
        tidy_response(component, kind)

    def _add_rule(self, schema: Schema, kind: Any, name: str) -> None:
        rule, bare = get_rule_and_type(kind)
        if is_struct(bare):
            return
        for choice in _list_non_null(schema):
            if get_origin(bare) is list:
                self._add_rule(choice["items"], get_args(bare)[0], name)
            if rule is not None:
                self._apply_rule(choice, rule)
        if self._build_example is not None:
            schema.setdefault("examples", [self._build_example(kind, name)])

    def _add_response_rules(self, schema: Schema, kind: Any) -> None:
        """Add the rules and the format that a response field declares."""
        rules = list(iter_rules(kind))
        for choice in _list_non_null(schema):
            for rule in rules:
                self._apply_rule(choice, rule)
            if "items" in choice:
                self._add_response_rules(choice["items"], _get_item_type(kind))
            if choice.get("type") == "string" and "format" not in choice:
                choice.update(_get_format(kind))

    def _add_response_example(
        self, schema: Schema, kind: Any, field: msgspec.structs.FieldInfo
    ) -> None:
        """Add an example for free text. Viewers derive other types' examples from the schema."""
        (choice, *others) = _list_non_null(schema)
        is_text = choice.get("type") == "string" and choice.keys().isdisjoint(_SELF_EXPLANATORY)
        struct = get_struct(kind)
        if self._build_response_example is None or others or not is_text or struct is None:
            return
        example = self._build_response_example(field.type, struct, field.encode_name)
        if isinstance(example, str) and example:
            schema["examples"] = [example]

    def _apply_rule(self, schema: Schema, rule: Rule) -> None:
        if self._currency is not None:
            rule = rule.for_currency(self._currency)
        if not isinstance(rule, Choice):
            schema.update(rule.to_json_schema())
            return
        if rule.name is None:
            schema.pop("$ref", None)
            schema.update({"type": "string", **rule.to_json_schema()})
            return
        known = self._enums.setdefault(rule.name, rule)
        if known.values != rule.values:
            raise TypeError(f"two different enums are named {rule.name}")
        schema.pop("type", None)
        schema.update(build_reference(rule.name))


def get_struct(kind: Any) -> type[msgspec.Struct] | None:
    """Return the struct class in a type such as `Record` or `Page[Record]`, or None."""
    struct = get_origin(kind) or kind
    return struct if isinstance(struct, type) and issubclass(struct, msgspec.Struct) else None


def build_reference(name: str) -> Schema:
    return {"$ref": REF_PREFIX + name}


def get_component_name(schema: Schema) -> str:
    """Return the component name that a reference points to."""
    return str(schema["$ref"].rpartition("/")[2])


def build_components(kinds: Sequence[Any]) -> tuple[dict[Any, Schema], dict[str, Schema]]:
    """Return a reference for each type, and the components by name.

    A component has its class's name. `Page[CardRecord]` becomes `CardPage`. Classes that share
    a name are qualified with their modules; see `require_unique_names`.
    """
    schemas, definitions = msgspec.json.schema_components(kinds, ref_template=REF_PREFIX + "{name}")
    names = {name: _PAGE_NAME.sub(r"\1Page", name) for name in definitions}
    components = {
        names[name]: _rename_references(schema, names) for name, schema in definitions.items()
    }
    for schema in components.values():
        schema.pop("title", None)  # the component name
        if "description" in schema:
            schema["description"] = inspect.cleandoc(schema["description"])
    references = [_rename_references(schema, names) for schema in schemas]
    return dict(zip(kinds, references, strict=True)), components


def require_unique_names(names: Iterable[str]) -> None:
    """Raise TypeError for names qualified with a module: generators need plain names."""
    qualified = [name for name in names if "." in name]
    if qualified:
        raise TypeError(f"classes that share a name: {', '.join(qualified)}")


def tidy_request(component: Schema) -> None:
    """Allow null for every optional field, since null means the same as absent.

    Defaults that are null are removed, and nullable types are simplified.
    """
    for name, schema in component["properties"].items():
        described = schema if schema.get("default") is None else _add_null(schema)
        if described.get("default", ...) is None:
            del described["default"]
        component["properties"][name] = _use_type_list(described)


def tidy_query(properties: dict[str, Schema]) -> dict[str, Schema]:
    """Return query parameters without null, which a query cannot express."""
    return {name: _remove_null(schema) for name, schema in properties.items()}


def tidy_response(component: Schema, kind: Any) -> None:
    """Remove defaults, require fields that are always sent, and allow null only if null is sent."""
    struct = get_struct(kind)
    assert struct is not None
    omits_defaults = struct.__struct_config__.omit_defaults
    required = []
    for field in msgspec.structs.fields(kind):
        schema = component["properties"][field.encode_name]
        schema.pop("default", None)
        if field.required or not (omits_defaults or field.default is msgspec.UNSET):
            required.append(field.encode_name)
        elif omits_defaults and field.default is None:
            schema = _remove_null(schema)
        component["properties"][field.encode_name] = _use_type_list(schema)
    component["required"] = required


def _encode(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _add_null(schema: Schema) -> Schema:
    inner, outer = schema.copy(), Schema()
    for name in ("default", "description", "examples"):
        if name in inner:
            outer[name] = inner.pop(name)
    return {"anyOf": [inner, _NULL_SCHEMA], **outer}


def _remove_null(schema: Schema) -> Schema:
    if isinstance(schema.get("type"), list):
        (kind,) = (name for name in schema["type"] if name != "null")
        return {**schema, "type": kind}
    choices = schema.get("anyOf", [])
    if _NULL_SCHEMA not in choices:
        return schema
    rest = {name: value for name, value in schema.items() if name != "anyOf"}
    if rest.get("default", ...) is None:
        del rest["default"]
    others = [choice for choice in choices if choice != _NULL_SCHEMA]
    return {**(others[0] if len(others) == 1 else {"anyOf": others}), **rest}


def _use_type_list(schema: Schema) -> Schema:
    """Write `X or null` as `type: [X, "null"]` unless X is a union, reference or enum."""
    if _NULL_SCHEMA not in schema.get("anyOf", []):
        return schema
    plain = _remove_null(schema)
    if "enum" in plain or not isinstance(plain.get("type"), str):
        return schema
    return {**plain, "type": [plain["type"], "null"]}


def _rename_references(part: Any, names: dict[str, str]) -> Any:
    if isinstance(part, list):
        return [_rename_references(item, names) for item in part]
    if not isinstance(part, dict):
        return part
    renamed = {key: _rename_references(value, names) for key, value in part.items()}
    if isinstance(part.get("$ref"), str):
        renamed["$ref"] = REF_PREFIX + names[get_component_name(part)]
    return renamed


def _list_non_null(schema: Schema) -> list[Schema]:
    return [choice for choice in schema.get("anyOf", [schema]) if choice.get("type") != "null"]


def _get_format(kind: Any) -> Schema:
    text_type = find_text_type(kind)
    return (
        {} if text_type is None or not text_type.json_format else {"format": text_type.json_format}
    )


def iter_union_members(kind: Any) -> Iterator[Any]:
    """Yield a union's members except None and `UnsetType`; yield any other type itself."""
    origin = get_origin(kind)
    if origin is None or origin in (Annotated, list, dict) or get_struct(kind):
        yield kind
        return
    for member in get_args(kind):
        if member not in (NoneType, msgspec.UnsetType):
            yield from iter_union_members(member)


def find_text_type(kind: Any) -> TextType | None:
    """Return a response field's declared text type, or None."""
    for member in iter_union_members(kind):
        if get_origin(member) is Annotated:
            found = [note for note in get_args(member)[1:] if isinstance(note, TextType)]
            if found:
                return found[0]
    return None


def iter_rules(kind: Any) -> Iterator[Rule]:
    for member in iter_union_members(kind):
        bare, *notes = get_args(member) if get_origin(member) is Annotated else (member,)
        rules = [note for note in notes if isinstance(note, Rule)]
        if is_enum(bare) and not rules:
            rules = [get_enum_rule(bare)]
        yield from rules


def _get_item_type(kind: Any) -> Any:
    for member in iter_union_members(kind):
        bare = get_args(member)[0] if get_origin(member) is Annotated else member
        if get_origin(bare) is list:
            return get_args(bare)[0]
    return Any


def _iter_structs(kind: Any) -> Iterator[Any]:
    """Yield all structs in a type, including nested structs."""
    if get_struct(kind):
        yield kind
        for field in msgspec.structs.fields(kind):
            yield from _iter_structs(field.type)
    else:
        for argument in get_args(kind):
            yield from _iter_structs(argument)
