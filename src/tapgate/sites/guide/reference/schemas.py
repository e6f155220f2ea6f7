"""Request and response schemas: field names, types and constraints, in words."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tapgate.http.api.examples import GENERIC_TEXT

Schema = dict[str, Any]

_TYPES = ("string", "integer", "number", "boolean", "object")
_ONE_OF_PREFIX = "one of "
#: The integer type's own bounds, which the reference omits.
_INT64_BOUNDS = {-(2**63), 2**63 - 1}
_MAX_EXAMPLE_DEPTH = 4
#: Example values by type, for fields without a declared example.
_PLAIN_EXAMPLES = {
    "boolean": True,
    "integer": 1,
    "number": 1.5,
    "object": {},
    "string": GENERIC_TEXT,
    "array": [],
}


class Field(NamedTuple):
    """Request or response field. `rule` is Markdown."""

    name: str
    type: str
    required: bool
    rule: str
    example: Any
    children: "tuple[Field, ...]" = ()
    #: Between the field's name and the name of a child, in a path such as `data[].id`.
    separator: str = "."

    @property
    def is_choice(self) -> bool:
        return self.rule.startswith(_ONE_OF_PREFIX)


class Schemas:
    """Schemas of one page.

    The objects in `links` are described once and linked (see `find_shared`). All other objects are
    described where they are used, as children of a field.
    """

    def __init__(self, components: dict[str, Schema]) -> None:
        self._components = components
        self.links: dict[str, str] = {}

    def find_shared(self, roots: Iterable[Schema]) -> list[str]:
        """Return the objects that are used more than once, at least once inside another object."""
        used: Counter[str] = Counter()
        nested: dict[str, None] = {}
        for root in roots:
            known: set[str] = set()
            queue = [(name, False) for name in _list_ref_names(root)]
            while queue:
                name, is_nested = queue.pop(0)
                used[name] += 1
                if is_nested:
                    nested[name] = None
                if name not in known:
                    known.add(name)
                    members = self._components[name].get("properties", {}).values()
                    queue += [(child, True) for item in members for child in _list_ref_names(item)]
        return [name for name in nested if used[name] > 1]

    def get_description(self, name: str) -> str:
        return str(self._components[name].get("description", ""))

    def list_names(self, schema: Schema) -> list[str]:
        """Return the object names that a schema refers to, usually one."""
        return list(_list_ref_names(schema))

    def list_fields(self, name: str) -> Iterator[Field]:
        component = self._components[name]
        required = component.get("required", [])
        for member, schema in component.get("properties", {}).items():
            field = self.build_field(member, schema, required=member in required)
            types = [item.get("type") for item in _list_alternatives(schema)]
            yield field._replace(
                children=tuple(
                    field
                    for child in _list_ref_names(schema)
                    if child not in self.links
                    for field in self.list_fields(child)
                ),
                separator="[]." if "array" in types else ".",
            )

    def build_example(self, schema: Schema, depth: int = 0) -> Any:
        """Return an example value, from the examples that the fields declare."""
        if schema.get("examples"):
            return schema["examples"][0]
        choice = next(iter(_list_alternatives(schema)), {})
        if "$ref" in choice:
            return self.build_example(self._components[_get_ref_name(choice)], depth)
        if "properties" in choice and depth <= _MAX_EXAMPLE_DEPTH:
            return {
                name: self.build_example(member, depth + 1)
                for name, member in choice["properties"].items()
            }
        if "items" in choice:
            return [self.build_example(choice["items"], depth)]
        if "enum" in choice:
            return choice["enum"][0]
        return None if _is_nullable(schema) else _PLAIN_EXAMPLES.get(str(choice.get("type")))

    def build_parameter(self, parameter: Mapping[str, Any]) -> Field:
        schema, required = parameter["schema"], parameter.get("required", False)
        field = self.build_field(parameter["name"], schema, required=required)
        texts = dict.fromkeys([parameter["description"].removesuffix("."), *field.rule.split("; ")])
        return field._replace(rule="; ".join(filter(None, texts)))

    def build_field(self, name: str, schema: Schema, *, required: bool) -> Field:
        (example,) = schema.get("examples", [None])
        return Field(name, self.render_type(schema), required, _render_rule(schema), example)

    def render_type(self, schema: Schema) -> str:
        """Describe the type in words, with links to objects described elsewhere."""
        types = [self._render_plain_type(item) for item in _list_alternatives(schema)]
        return " or ".join([*types, *(["null"] if _is_nullable(schema) else [])])

    def _render_plain_type(self, schema: Schema) -> str:
        if "$ref" in schema:
            return self.links.get(_get_ref_name(schema), "object")
        if schema.get("type") == "array":
            return f"array of {self.render_type(schema.get('items', {}))}"
        if "enum" in schema and "type" not in schema:
            return "string"
        return schema["type"] if schema.get("type") in _TYPES else "any"


def flatten_fields(fields: Iterable[Field], prefix: str = "") -> Iterator[Field]:
    """Yield fields and their children, with paths such as `data[].id` as names."""
    for field in fields:
        yield field._replace(name=prefix + field.name)
        yield from flatten_fields(field.children, prefix + field.name + field.separator)


def format_code(value: object) -> str:
    """Format a value as inline code, with booleans as in JSON."""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _list_alternatives(schema: Schema) -> list[Schema]:
    """Return a schema's alternatives, except null."""
    if isinstance(schema.get("type"), list):
        return [{**schema, "type": item} for item in schema["type"] if item != "null"]
    return [entry for entry in schema.get("anyOf", [schema]) if entry.get("type") != "null"]


def _is_nullable(schema: Schema) -> bool:
    if isinstance(schema.get("type"), list):
        return "null" in schema["type"]
    return any(item.get("type") == "null" for item in schema.get("anyOf", []))


def _get_ref_name(schema: Schema) -> str:
    return str(schema["$ref"].rpartition("/")[2])


def _list_ref_names(schema: Schema) -> Iterator[str]:
    """Yield the object names that a schema refers to."""
    for item in _list_alternatives(schema):
        if "$ref" in item:
            yield _get_ref_name(item)
        elif "items" in item:
            yield from _list_ref_names(item["items"])


def _render_rule(schema: Schema) -> str:
    rules = [rule for item in _list_alternatives(schema) for rule in _list_rules(item)]
    if "anyOf" in schema and "description" in schema:
        rules.append(schema["description"])
    default = schema.get("default")
    if default is not None:
        rules.append(f"default {format_code(default)}")
    return "; ".join(dict.fromkeys(rule.removesuffix(".") for rule in rules))


def _list_rules(schema: Schema) -> Iterator[str]:
    if "description" in schema and "$ref" not in schema:
        yield schema["description"]
    elif "pattern" in schema:
        yield f"matches {format_code(schema['pattern'])}"
    elif schema.get("format") == "date":
        yield "`YYYY-MM-DD`"
    elif schema.get("format") == "date-time":
        yield "RFC 3339 timestamp"
    elif schema.get("format") == "email":
        yield "email address"
    elif "maxLength" in schema:
        yield f"{schema.get('minLength', 0)} to {schema['maxLength']} characters"
    if "enum" in schema:
        yield _ONE_OF_PREFIX + ", ".join(format_code(value) for value in schema["enum"])
    yield from _list_bounds(schema)
    if "items" in schema:
        yield from (f"each {rule}" for rule in _list_rules(schema["items"]))


def _list_bounds(schema: Schema) -> Iterator[str]:
    minimum, maximum = schema.get("minimum"), schema.get("maximum")
    if {minimum, maximum} - _INT64_BOUNDS - {None}:
        yield f"{minimum} to {maximum}"
    if "maxItems" in schema:
        yield f"{schema.get('minItems', 0)} to {schema['maxItems']} items"
    elif schema.get("minItems"):
        yield f"at least {schema['minItems']}"
