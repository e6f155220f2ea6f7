"""JSON Schemas of structs, in the form that OpenAPI generators support best."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, get_origin

import msgspec

Schema = dict[str, Any]

REF_PREFIX: Final = "#/components/schemas/"
_NULL_SCHEMA: Final[Schema] = {"type": "null"}
_PAGE_NAME: Final = re.compile(r"Page_(\w+?)(?:Record)?_")


def get_struct(kind: Any) -> type[msgspec.Struct] | None:
    """Return the struct class of a type such as `Record` or `Page[Record]`, or None."""
    struct = get_origin(kind) or kind
    return struct if isinstance(struct, type) and issubclass(struct, msgspec.Struct) else None


def build_reference(name: str) -> Schema:
    return {"$ref": REF_PREFIX + name}


def get_component_name(schema: Schema) -> str:
    """Return the name of the component that a reference points to."""
    return str(schema["$ref"].rpartition("/")[2])


def build_components(kinds: Sequence[Any]) -> tuple[dict[Any, Schema], dict[str, Schema]]:
    """Return a reference for each type, and the components by name.

    A component has the name of its class. `Page[CardRecord]` becomes `CardPage`. Classes that share
    a name are qualified with their modules; see `require_unique_names`.
    """
    schemas, definitions = msgspec.json.schema_components(kinds, ref_template=REF_PREFIX + "{name}")
    names = {name: _PAGE_NAME.sub(r"\1Page", name) for name in definitions}
    components = {
        names[name]: _rename_references(schema, names) for name, schema in definitions.items()
    }
    for name, schema in components.items():
        schema["title"] = name
    references = [_rename_references(schema, names) for schema in schemas]
    return dict(zip(kinds, references, strict=True)), components


def require_unique_names(names: Iterable[str]) -> None:
    """Raise TypeError for names qualified with a module: generators need plain names."""
    qualified = [name for name in names if "." in name]
    if qualified:
        raise TypeError(f"classes that share a name: {', '.join(qualified)}")


def tidy_request(component: Schema) -> None:
    """Remove null defaults, since null means the same as absent, and simplify nullable types."""
    for name, schema in component["properties"].items():
        if schema.get("default", ...) is None:
            del schema["default"]
        component["properties"][name] = _use_type_list(schema)


def tidy_query(properties: dict[str, Schema]) -> dict[str, Schema]:
    """Return the parameters of a query without null, which a query cannot express."""
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


def _remove_null(schema: Schema) -> Schema:
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
