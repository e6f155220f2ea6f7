"""Operations of the API by tag, read from the OpenAPI document."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from tapgate.http.openapi_components import inline_shared_parts
from tapgate.sites.guide.anchors import AnchorRegistry
from tapgate.sites.guide.reference.schemas import Schema, Schemas

#: Key for the response with the errors that most operations have.
DEFAULT_RESPONSE: Final = "default"
_IDEMPOTENCY_HEADER: Final = "Idempotency-Key"
#: Credential schemes that sign the body, and all others, in order of preference in examples.
_SIGNING_SCHEMES: Final = ("posSignature", "partnerSignature")
_SCHEMES: Final = ("apiKey", "adminToken", "serviceSignature", *_SIGNING_SCHEMES)
_JSON_MEDIA_TYPE: Final = "application/json"


class Operation(NamedTuple):
    """API operation. Routes whose specs differ only in `operationId` form one operation."""

    routes: tuple[tuple[str, str], ...]  # method and path
    spec: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.spec["operationId"])

    @property
    def tag(self) -> str:
        return str(self.spec["tags"][0])

    @property
    def summary(self) -> str:
        return str(self.spec["summary"])

    @property
    def body(self) -> Schema | None:
        """Return the request body's schema, or None if there is no body or no schema."""
        content = self.body_media
        return next((item["schema"] for item in content.values() if "schema" in item), None)

    @property
    def body_media(self) -> dict[str, Any]:
        """Return the content of the request body by media type."""
        media: dict[str, Any] = self.spec.get("requestBody", {}).get("content", {})
        return media

    @property
    def body_example(self) -> Any:
        """Return the example of a JSON body, or None."""
        return self.body_media.get(_JSON_MEDIA_TYPE, {}).get("example")

    @property
    def response(self) -> Schema | None:
        """Return the success response's schema, or None if it has no body."""
        content = self.success_response.get("content", {})
        return next((item["schema"] for item in content.values()), None)

    @property
    def success_response(self) -> dict[str, Any]:
        success: dict[str, Any] = self.spec["responses"][self.success_status]
        return success

    @property
    def success_status(self) -> str:
        return str(next(iter(self.spec["responses"])))

    @property
    def is_idempotent(self) -> bool:
        return any(item["name"] == _IDEMPOTENCY_HEADER for item in self.spec["parameters"])

    @property
    def scheme(self) -> str | None:
        """Return the credential scheme for examples, or None if the operation is public."""
        accepted = self.list_schemes()
        signs_body = self.body_example is not None
        preferred = (*_SIGNING_SCHEMES, *_SCHEMES) if signs_body else _SCHEMES
        return next((scheme for scheme in preferred if scheme in accepted), None)

    def list_schemes(self) -> list[str]:
        """Return the credential schemes that the operation accepts."""
        names = {name for choice in self.spec["security"] for name in choice}
        return [scheme for scheme in _SCHEMES if scheme in names]

    def list_parameters(self, location: str) -> list[dict[str, Any]]:
        return [item for item in self.spec["parameters"] if item.get("in") == location]

    def list_errors(self) -> list[tuple[str, list[str]]]:
        """Return the error codes by status, except those that most operations have."""
        return [
            (status, list_codes(response))
            for status, response in self.spec["responses"].items()
            if status not in (self.success_status, DEFAULT_RESPONSE)
        ]

    def list_common_errors(self) -> list[str]:
        return list_codes(self.spec["responses"].get(DEFAULT_RESPONSE, {}))


#: Operations on a page with their section anchors.
Sections = list[tuple[Operation, str]]


class Reference:
    """Operations by tag, and the schemas of their bodies."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.tags: Mapping[str, str] = {
            item["name"]: item.get("description", "") for item in document["tags"]
        }
        inlined = _inline_enums(inline_shared_parts(document))
        self._components: dict[str, Schema] = inlined["components"]["schemas"]
        self.sections: Mapping[str, Sections] = {tag: [] for tag in self.tags}
        self._anchors = {tag: AnchorRegistry(tag) for tag in self.tags}
        for operation in _list_operations(inlined):
            anchor = self._anchors[operation.tag].add(operation.summary)
            self.sections[operation.tag].append((operation, anchor))

    def list_objects(self, tag: str) -> tuple[Schemas, dict[str, str]]:
        """Return a tag's schemas, and the anchors of the objects that are described once."""
        schemas = Schemas(self._components)
        roots: Iterable[Schema] = [
            item
            for operation, _ in self.sections[tag]
            for item in (operation.body, operation.response)
            if item is not None
        ]
        anchors = {name: self._anchors[tag].add(name) for name in schemas.find_shared(roots)}
        schemas.links = {name: f"[{name}](#{anchor})" for name, anchor in anchors.items()}
        return schemas, anchors


def get_page_name(tag: str) -> str:
    return tag.lower().replace(" ", "-")


def list_codes(response: dict[str, Any]) -> list[str]:
    content: dict[str, Any] = next(iter(response.get("content", {}).values()), {})
    return list(content.get("examples", ()))


def _inline_enums(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with enums inlined, so that pages list the values of each field."""
    schemas = document["components"]["schemas"]
    enums = {
        f"#/components/schemas/{name}": item for name, item in schemas.items() if "enum" in item
    }

    def inline(part: Any) -> Any:
        if isinstance(part, list):
            return [inline(entry) for entry in part]
        if not isinstance(part, dict):
            return part
        found = enums.get(part["$ref"]) if isinstance(part.get("$ref"), str) else None
        rest = {name: inline(value) for name, value in part.items() if not found or name != "$ref"}
        return {"type": "string", "enum": found["enum"], **rest} if found else rest

    inlined: dict[str, Any] = inline(document)
    return inlined


def _list_operations(document: dict[str, Any]) -> Iterator[Operation]:
    groups: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            comparable = {name: value for name, value in operation.items() if name != "operationId"}
            _, names = groups.setdefault(f"{method} {json.dumps(comparable)}", (operation, []))
            names.append((method.upper(), path))
    for operation, names in groups.values():
        yield Operation(tuple(names), operation)


def to_camel_case(name: str) -> str:
    """Return the name of an operation or a path parameter in the TypeScript client."""
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)


def to_snake_case(tag: str) -> str:
    """Return the name of a tag's operation group in the Python client."""
    return re.sub(r"\W", "_", tag).lower()
