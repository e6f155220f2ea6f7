"""The OpenAPI 3.1 document of the gateway, generated from the endpoint declarations."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tapgate import VERSION
from tapgate.api.endpoint import Access, Endpoint
from tapgate.api.examples import build_example, get_path_example
from tapgate.api.openapi_schemas import Schemas
from tapgate.api.openapi_text import INTRODUCTION, TAG_DESCRIPTIONS
from tapgate.api.openapi_webhooks import (
    WebhookEvent,
    build_webhook_operations,
    build_webhook_parameters,
)
from tapgate.api.response_examples import build_response_example
from tapgate.errors import TABLE, ApiError, Code
from tapgate.http.body_limits import KIBIBYTE
from tapgate.http.json_schema import Schema, require_unique_names
from tapgate.schemas.common import ErrorBody
from tapgate.schemas.fields import IdempotencyKeyRule

_JSON = "application/json"
_SUCCESS_DESCRIPTIONS = {200: "Success", 201: "Created", 204: "No content"}
_BINARY_SCHEMA: Schema = {"type": "string", "format": "binary"}

_SIGNATURE_SCHEMES = {
    "pos": ("signingKey", "signingTime", "posSignature"),
    "partner": ("signingKey", "partnerId", "signingTime", "partnerSignature"),
}
_SERVICE_SIGNATURE_SCHEMES = ("serviceName", "serviceTime", "serviceSignature")


def render_openapi_document(
    endpoints: Sequence[Endpoint], currency: str, events: Sequence[WebhookEvent] = ()
) -> bytes:
    request_types = [
        kind for endpoint in endpoints for kind in (endpoint.body_struct, endpoint.query_type)
    ]
    response_types = [
        *(endpoint.response_type for endpoint in endpoints),
        *(event.record_type for event in events),
    ]
    schemas = Schemas(
        [kind for kind in request_types if kind is not None],
        [ErrorBody, *(kind for kind in response_types if kind not in (None, bytes))],
        currency,
    )
    queries = dict.fromkeys(
        kind for endpoint in endpoints if (kind := endpoint.query_type) is not None
    )
    builder = _OperationBuilder(
        schemas, {kind: schemas.pop_query_parameters(kind) for kind in queries}
    )
    require_unique_names(schemas.components)
    _require_unique_ids(endpoints)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        operation = builder.build(endpoint)
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Tapgate",
            "version": VERSION,
            "summary": "Cards, wallets, agents and merchants on a double-entry ledger",
            "description": INTRODUCTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [
            _build_tag(name) for name in dict.fromkeys(endpoint.tag for endpoint in endpoints)
        ],
        "paths": paths,
        "webhooks": build_webhook_operations(events, schemas),
        "components": {
            "schemas": schemas.components,
            "securitySchemes": _build_security_schemes(),
            "parameters": {
                "RequestId": _build_request_id_parameter(),
                "IdempotencyKey": _build_idempotency_key_parameter(),
                **build_webhook_parameters(),
            },
            "headers": _build_response_headers(),
        },
    }
    return msgspec.json.encode(document)


def _build_tag(name: str) -> dict[str, str]:
    description = TAG_DESCRIPTIONS.get(name)
    return {"name": name} if description is None else {"name": name, "description": description}


def _require_unique_ids(endpoints: Sequence[Endpoint]) -> None:
    seen: dict[str, str] = {}
    for endpoint in endpoints:
        other = seen.setdefault(endpoint.operation_id, endpoint.name)
        if other != endpoint.name:
            raise TypeError(f"{other} and {endpoint.name} share an operation id")


class _OperationBuilder:
    """Builder for operation objects. `queries` maps query structs to their parameters."""

    def __init__(self, schemas: Schemas, queries: dict[Any, dict[str, Schema]]) -> None:
        self._schemas = schemas
        self._queries = queries

    def build(self, endpoint: Endpoint) -> dict[str, Any]:
        operation: dict[str, Any] = {
            "operationId": endpoint.operation_id,
            "tags": [endpoint.tag],
            "summary": endpoint.summary,
            "description": "\n\n".join(
                filter(None, [endpoint.description, _describe_access(endpoint)])
            ),
            "security": _build_security(endpoint.access),
            "parameters": self._build_parameters(endpoint),
            "responses": self._build_responses(endpoint),
        }
        if endpoint.body_type is not None:
            operation["requestBody"] = self._build_request_body(endpoint)
        return operation

    def _build_parameters(self, endpoint: Endpoint) -> list[dict[str, Any]]:
        parameters: list[dict[str, Any]] = [{"$ref": "#/components/parameters/RequestId"}]
        if endpoint.moves_money:
            parameters.append({"$ref": "#/components/parameters/IdempotencyKey"})
        for name in endpoint.path_parameters:
            schema: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
            schema["examples"] = [get_path_example(endpoint.path, name)]
            parameters.append({"name": name, "in": "path", "required": True, "schema": schema})
        for name, schema in self._queries.get(endpoint.query_type, {}).items():
            parameters.append({"name": name, "in": "query", "schema": schema})
        return parameters

    def _build_request_body(self, endpoint: Endpoint) -> dict[str, Any]:
        limit = {"description": f"At most {endpoint.body_limit // KIBIBYTE:,} KiB"}
        if isinstance(endpoint.body_schema, Mapping):
            return limit | {"required": True, "content": endpoint.body_schema}
        kind = endpoint.body_struct
        if kind is None:
            content: dict[str, Any] = {"schema": _build_file_schema(endpoint.body_media[0])}
            file = {"required": True, "content": dict.fromkeys(endpoint.body_media, content)}
            return limit | file
        required = any(field.required for field in msgspec.structs.fields(kind))
        # Omit fields with their own access rules, so that every caller may send the example.
        limited = endpoint.field_access
        value = {name: item for name, item in build_example(kind).items() if name not in limited}
        content = {"schema": self._schemas.get(kind), "example": value}
        body = {"required": required, "content": dict.fromkeys(endpoint.body_media, content)}
        return limit | body

    def _build_responses(self, endpoint: Endpoint) -> dict[str, Any]:
        headers = _HEADER_REFERENCES | (_REPLAY_HEADER if endpoint.moves_money else {})
        success = {
            "description": _SUCCESS_DESCRIPTIONS.get(endpoint.status, "Success"),
            "headers": headers,
        }
        responses = {str(endpoint.status): success | self._build_response_content(endpoint)}
        by_status: dict[int, list[Code]] = {}
        for code in _list_error_codes(endpoint):
            by_status.setdefault(TABLE[code][0], []).append(code)
        for status, codes in sorted(by_status.items()):
            responses[str(status)] = self._build_error_response(codes)
        for status in endpoint.other_statuses:
            responses[str(status)] = success | self._build_response_content(endpoint)
        return responses

    def _build_response_content(self, endpoint: Endpoint) -> dict[str, Any]:
        kind = endpoint.response_type
        if kind is None:
            return {}
        if kind is bytes:
            return {
                "content": {
                    media: {"schema": _build_file_schema(media)} for media in endpoint.media
                }
            }
        content = {"schema": self._schemas.get(kind), "example": build_response_example(kind)}
        return {"content": dict.fromkeys(endpoint.media, content)}

    def _build_error_response(self, codes: list[Code]) -> dict[str, Any]:
        content = {
            "schema": self._schemas.get(ErrorBody),
            "examples": {str(code): {"value": ApiError(code).body()} for code in codes},
        }
        return {
            "description": "; ".join(dict.fromkeys(TABLE[code][1] for code in codes)),
            "headers": _HEADER_REFERENCES,
            "content": {_JSON: content},
        }


def _build_file_schema(media: str) -> Schema:
    """Return the schema of a body that handlers receive or return as bytes."""
    if media == _JSON:
        return {"type": "object"}
    return {"type": "string"} if media.startswith("text/") else _BINARY_SCHEMA


def _list_error_codes(endpoint: Endpoint) -> list[Code]:
    """Return the error codes that the endpoint declares and those implied by its declaration."""
    codes: list[Code] = []
    access = endpoint.access
    if endpoint.body_type is not None:
        codes += [Code.PAYLOAD_TOO_LARGE, Code.INVALID_REQUEST]
    if endpoint.query_type is not None or (endpoint.body_type and not endpoint.invalid_is_400):
        codes.append(Code.VALIDATION_FAILED)
    if not access.public:
        codes += [Code.UNAUTHORIZED, Code.FORBIDDEN]
    if access.hmac == "pos":
        codes += [Code.PROCESSOR_SUSPENDED, Code.TERMINAL_BLOCKED]
    if access.hmac == "partner":
        codes.append(Code.PARTNER_SUSPENDED)
    if endpoint.moves_money:
        codes += [Code.CURRENCY_NOT_SUPPORTED, Code.DUPLICATE_REQUEST]
    codes += endpoint.errors
    if endpoint.path_parameters:
        codes.append(Code.NOT_FOUND)  # the router rejects some values, such as overlong ones
    codes += [Code.RATE_LIMITED, Code.INTERNAL_ERROR, Code.SERVICE_UNAVAILABLE]
    return list(dict.fromkeys(codes))


def _describe_access(endpoint: Endpoint) -> str:
    access = endpoint.access
    if access.public:
        return "Public."
    sentences = [f"Access: {_describe_callers(access)}."]
    fields: dict[Access, list[str]] = {}
    for name, field_access in endpoint.field_access.items():
        fields.setdefault(field_access, []).append(f"`{name}`")
    for field_access, names in fields.items():
        sentences.append(f"To set {', '.join(names)}: {_describe_callers(field_access)}.")
    return " ".join(sentences)


def _describe_callers(access: Access) -> str:
    kinds = [
        access.scope and f"an API key with the scope `{access.scope}`",
        access.roles and f"an admin ({', '.join(sorted(access.role_names))})",
        access.hmac == "pos" and "a processor's or terminal's signature",
        access.hmac == "partner" and "a partner's signature",
        access.service and "an internal service's signature",
    ]
    return "; ".join(kind for kind in kinds if kind)


def _build_security(access: Access) -> list[dict[str, list[str]]]:
    """Return alternative security requirements. The schemes of each one are sent together."""
    choices: list[dict[str, list[str]]] = []
    if access.scope:
        choices.append({"apiKey": [access.scope]})
    if access.roles:
        choices.append({"adminToken": sorted(access.role_names)})
    if access.hmac:
        choices.append({name: [] for name in _SIGNATURE_SCHEMES[access.hmac]})
    if access.service:
        choices.append({name: [] for name in _SERVICE_SIGNATURE_SCHEMES})
    return choices


def _build_security_schemes() -> dict[str, Any]:
    def build_bearer(description: str, **more: str) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": description, **more}

    def build_header(name: str, description: str) -> dict[str, str]:
        return {"type": "apiKey", "in": "header", "name": name, "description": description}

    signature = "Hex HMAC-SHA-256 of method, path, timestamp and raw body, joined by newlines"
    return {
        "apiKey": build_bearer("`svc_live_...` or `svc_test_...`"),
        "adminToken": build_bearer(
            "From `POST /api/v1/admin/login` or `/refresh`", bearerFormat="JWT"
        ),
        "signingKey": build_header("X-API-Key-ID", "ID of the signing key"),
        "signingTime": build_header(
            "X-Timestamp", "RFC 3339 in UTC, within 5 minutes of the server's clock"
        ),
        "posSignature": build_header("X-Signature", signature),
        "partnerId": build_header("X-Partner-ID", "ID of the partner that owns the key"),
        "partnerSignature": build_header("X-Signature", signature),
        "serviceName": build_header("X-Service-Name", "Name of the calling service"),
        "serviceTime": build_header(
            "X-Service-Timestamp", "Unix time in seconds, within 5 minutes of the server's clock"
        ),
        "serviceSignature": build_header(
            "X-Service-Signature", "Hex HMAC-SHA-256 of `METHOD|PATH|QUERY|TIMESTAMP`"
        ),
    }


def _build_request_id_parameter() -> dict[str, Any]:
    return {
        "name": "X-Request-ID",
        "in": "header",
        "description": "Tracing ID, returned in the response. Generated if absent or invalid.",
        "schema": {
            "type": "string",
            "pattern": "^[A-Za-z0-9._-]{1,128}$",
            "examples": ["checkout-1188"],
        },
    }


def _build_idempotency_key_parameter() -> dict[str, Any]:
    return {
        "name": "Idempotency-Key",
        "in": "header",
        "description": (
            "Alternative to `request_id` in the body. If both are sent, they must be equal."
        ),
        "schema": {
            "type": "string",
            "minLength": 1,
            "maxLength": 64,
            "examples": [IdempotencyKeyRule.example],
        },
    }


def _build_response_headers() -> dict[str, Any]:
    integer = {"type": "integer"}
    return {
        "X-Request-ID": {"description": "Tracing ID of the request", "schema": {"type": "string"}},
        "X-RateLimit-Limit": {
            "description": "Rate limit in requests per second",
            "schema": integer,
        },
        "X-RateLimit-Remaining": {
            "description": "Requests left in the burst",
            "schema": integer,
        },
        "X-RateLimit-Reset": {
            "description": "Unix time in seconds when the full burst is available again",
            "schema": integer,
        },
    }


_HEADER_REFERENCES = {
    name: {"$ref": f"#/components/headers/{name}"} for name in _build_response_headers()
}
_REPLAY_HEADER = {
    "Idempotent-Replayed": {
        "description": "`true` if this is the original response to a repeated request",
        "schema": {"type": "string"},
    }
}
