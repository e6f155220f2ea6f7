"""OpenAPI documents of both services, prepared for fuzzing, and their operations."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import schemathesis
from jsonschema_rs import Draft202012Validator, Validator
from schemathesis import Case
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation

from tapgate.http.openapi_components import inline_shared_parts
from tapgate_client.errors import TABLE, Code

Document = dict[str, Any]
AnyCase = Case[Any]

_SCHEMAS = "#/components/schemas/"
_CLOSED_PREFIX = "Closed"
_ACCESS_CODES = {Code.UNAUTHORIZED, Code.FORBIDDEN}


@dataclass(frozen=True)
class Operation:
    """One operation in an OpenAPI document."""

    service: str
    method: str
    path: str
    #: The document's operation object.
    spec: Mapping[str, Any]
    #: The operation as parsed by schemathesis.
    source: APIOperation[Any, Any, Any, Any]
    document: Document

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def label(self) -> str:
        """Name with the service, because some paths exist in both services."""
        return self.name if self.service == "gateway" else f"{self.name} ({self.service})"

    @property
    def operation_id(self) -> str:
        return str(self.spec.get("operationId", ""))

    @property
    def example(self) -> dict[str, Any] | None:
        """The documented JSON body, or None if there is none."""
        content = self.spec.get("requestBody", {}).get("content", {})
        example = content.get("application/json", {}).get("example")
        return example if isinstance(example, dict) else None

    @cached_property
    def body_validator(self) -> Validator | None:
        """JSON body validator, or None if no schema is documented."""
        content = self.spec.get("requestBody", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema")
        if schema is None:
            return None
        return Draft202012Validator({**schema, "components": self.document["components"]})

    def list_codes(self, status: int) -> set[str]:
        """Return the error codes documented for a status."""
        response = self.spec["responses"].get(str(status), {})
        content = response.get("content", {}).get("application/json", {})
        return set(content.get("examples", {}))


def list_operations(service: str, document: Document) -> list[Operation]:
    document = expand_default_responses(inline_shared_parts(document))
    schema = schemathesis.openapi.from_dict(prepare_document(document))
    operations = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    assert len(operations) == sum(len(item) for item in document["paths"].values())
    return [
        Operation(
            service,
            operation.method.upper(),
            operation.path,
            document["paths"][operation.path][operation.method],
            operation,
            document,
        )
        for operation in operations
    ]


def expand_default_responses(document: Document) -> Document:
    """Return a copy that lists the default response's errors by status.

    Otherwise any status would count as documented. All other responses get its headers.
    """
    expanded = copy.deepcopy(document)
    for item in expanded["paths"].values():
        for operation in item.values():
            default = operation["responses"].pop("default", None)
            if default is None:
                continue
            for response in operation["responses"].values():
                response["headers"] = default["headers"] | response.get("headers", {})
            media = default["content"]["application/json"]
            general = {
                code: example
                for code, example in media["examples"].items()
                if operation["security"] or code not in _ACCESS_CODES
            }
            for status in {TABLE[Code(code)][0] for code in general}:
                examples = {
                    code: example
                    for code, example in general.items()
                    if TABLE[Code(code)][0] == status
                }
                content = {"application/json": {**media, "examples": examples}}
                operation["responses"].setdefault(str(status), {**default, "content": content})
    return expanded


def prepare_document(document: Document) -> Document:
    """Return a copy of the document for fuzzing.

    Security is removed because credentials are added later. Response schemas allow no additional
    properties, so that undocumented fields are found.
    """
    prepared = copy.deepcopy(document)
    schemas = prepared["components"]["schemas"]
    schemas |= {
        f"{_CLOSED_PREFIX}{name}": _close_schemas(schema) for name, schema in schemas.items()
    }
    for item in prepared["paths"].values():
        for operation in item.values():
            operation.pop("security", None)
            operation["responses"] = _close_schemas(operation["responses"])
    return prepared


def _close_schemas(part: Any) -> Any:
    if isinstance(part, list):
        return [_close_schemas(item) for item in part]
    if not isinstance(part, dict):
        return part
    closed = {name: _close_schemas(value) for name, value in part.items()}
    reference = part.get("$ref")
    if isinstance(reference, str) and reference.startswith(_SCHEMAS):
        closed["$ref"] = reference.replace(_SCHEMAS, _SCHEMAS + _CLOSED_PREFIX)
    if part.get("type") == "object" and "properties" in part:
        closed.setdefault("additionalProperties", False)
    return closed


def list_paths(document: Document) -> Iterator[tuple[str, set[str]]]:
    """Yield each path with its methods."""
    for path, item in document["paths"].items():
        yield path, {method.upper() for method in item}
