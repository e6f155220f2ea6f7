"""OpenAPI 3.1 document of the messenger, generated from the route table."""

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, get_args

import msgspec

from tapgate import VERSION
from tapgate.http.json_schema import (
    build_components,
    get_component_name,
    require_unique_names,
    tidy_request,
    tidy_response,
)
from tapgate.messenger.routes.access import SECURITY_SCHEMES
from tapgate.messenger.routes.route import JSON_MEDIA_TYPE, ErrorBody, Route

_TEXT_MEDIA_TYPE: Final = "text/plain"
_INTRODUCTION: Final = """\
HTTP API of the messenger. It receives messages from bridges and from the channel's provider, \
and sends template messages for internal services.

**Authentication.** Each operation names its credential: a bridge's bearer token, the provider's \
`X-Hub-Signature-256` over the raw body or verify token, or the signature of an internal service \
over `METHOD|PATH|QUERY|TIMESTAMP`.

**Errors.** Errors are `{"error": ..., "status": "error"}`. A 429 has `Retry-After` and \
`retryAfter`, both in seconds.

**Idempotency.** Template messages accept an `Idempotency-Key`; messages from the provider are \
processed once per message ID.

**Request IDs.** `X-Request-ID` is returned in the response and written to the logs.
"""
#: Tag name and description by handler module.
_TAGS: Final = {
    "bridge": ("Bridge", "Messages from bridges, with plain-text replies."),
    "webhook": ("Provider", "Webhooks for the channel's provider."),
    "messages": ("Messages", "Template messages from internal services."),
    "simulator": ("Simulator", "Simulated phones. Not available in production."),
    "system": ("System", "Health check and OpenAPI document."),
}
#: Descriptions of statuses that have their own meaning in the provider's protocol.
_PROVIDER_STATUS_PHRASES: Final = {
    421: "Cannot decrypt the request",
    427: "The form can no longer be used",
    432: "Invalid signature",
}


def build_document(routes: Sequence[Route]) -> bytes:
    schemas = _Schemas(routes)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _build_operation(route, schemas)
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Tapgate messenger",
            "version": VERSION,
            "summary": "Wallets and cards in chat",
            "description": _INTRODUCTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.values()],
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "securitySchemes": SECURITY_SCHEMES,
            "parameters": {"RequestId": _REQUEST_ID_PARAMETER},
            "headers": {
                "X-Request-ID": {"description": "Request ID", "schema": {"type": "string"}}
            },
        },
    }
    return msgspec.json.encode(document)


class _Schemas:
    """Schemas of all structs in request and response bodies."""

    def __init__(self, routes: Sequence[Route]) -> None:
        inputs = dict.fromkeys(route.body for route in routes if _is_struct(route.body))
        response_types = (
            item for route in routes for item in route.responses.values() if _is_struct(item)
        )
        outputs = dict.fromkeys([ErrorBody, *response_types])
        requests, responses = list(_iterate_structs(inputs)), list(_iterate_structs(outputs))
        self._references, self.components = build_components([*requests, *responses])
        require_unique_names(self.components)
        for kind in requests:
            tidy_request(self.components[get_component_name(self._references[kind])])
        for kind in responses:
            tidy_response(self.components[get_component_name(self._references[kind])], kind)

    def render_content(self, kind: Any) -> dict[str, Any]:
        """Return the OpenAPI `content` object, keyed by media type."""
        if kind is str:
            return {_TEXT_MEDIA_TYPE: {"schema": {"type": "string"}}}
        if isinstance(kind, Mapping):
            return {JSON_MEDIA_TYPE: {"schema": kind}}
        content: dict[str, Any] = {"schema": self._references[ErrorBody if kind is None else kind]}
        if hasattr(kind, "EXAMPLE"):
            content["example"] = kind.EXAMPLE
        return {JSON_MEDIA_TYPE: content}


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _iterate_structs(kinds: Iterable[Any]) -> Iterator[Any]:
    """Yield the structs and, recursively, the structs in their fields."""
    for kind in kinds:
        if _is_struct(kind):
            yield kind
            yield from _iterate_structs(field.type for field in msgspec.structs.fields(kind))
        else:
            yield from _iterate_structs(get_args(kind))


def _get_tag(route: Route) -> str:
    module = route.handler.__module__.rpartition(".")[2]
    return _TAGS.get(module, _TAGS["system"])[0]


def _build_operation(route: Route, schemas: _Schemas) -> dict[str, Any]:
    summary, _, details = inspect.cleandoc(route.handler.__doc__ or "").partition("\n")
    operation: dict[str, Any] = {
        "operationId": route.operation_id,
        "tags": [_get_tag(route)],
        "summary": summary,
        "description": "\n\n".join(filter(None, [details.strip(), route.access.description])),
        "security": [{name: [] for name in choice} for choice in route.access.security],
        "parameters": [{"$ref": "#/components/parameters/RequestId"}, *_build_parameters(route)],
        "responses": _build_responses(route, schemas),
    }
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": schemas.render_content(route.body)}
    return operation


def _build_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": item.name,
            "in": item.location,
            "description": item.description,
            "required": item.required,
            "schema": item.schema,
        }
        for item in route.parameters
    ]


def _build_responses(route: Route, schemas: _Schemas) -> dict[str, Any]:
    responses = {**_build_error_responses(route), **route.responses}
    return {
        str(status): {
            "description": _get_status_phrase(status),
            "headers": {"X-Request-ID": {"$ref": "#/components/headers/X-Request-ID"}},
            "content": schemas.render_content(kind),
        }
        for status, kind in sorted(responses.items())
    }


def _build_error_responses(route: Route) -> dict[int, Any]:
    """Return the error responses implied by the route's declaration."""
    body_statuses = (400, 413) if route.body is not None else ()
    return dict.fromkeys((*body_statuses, *route.access.error_statuses, 429, 500, 503))


def _get_status_phrase(status: int) -> str:
    return _PROVIDER_STATUS_PHRASES.get(status) or HTTPStatus(status).phrase


_REQUEST_ID_PARAMETER: Final = {
    "name": "X-Request-ID",
    "in": "header",
    "description": "Tracing ID, returned in the response. Generated if absent or invalid.",
    "schema": {
        "type": "string",
        "pattern": "^[A-Za-z0-9._-]{1,128}$",
        "examples": ["message-1188"],
    },
}
