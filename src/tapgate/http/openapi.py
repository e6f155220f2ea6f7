"""Generates OpenAPI 3.1 documents from endpoint declarations.

A service's subclass defines the texts, the credentials, the examples and the error responses.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from tapgate import VERSION
from tapgate.http.body_limits import DEFAULT_BODY_BYTES, KIBIBYTE
from tapgate.http.endpoint import JSON_MEDIA_TYPE, Endpoint
from tapgate.http.json_schema import Schema, Schemas, require_unique_names
from tapgate.http.openapi_components import share_repeated_parts
from tapgate_client.errors import TABLE, Code


class DocumentBuilder(ABC):
    title: str
    summary: str
    introduction: str
    tag_descriptions: Mapping[str, str]
    error_body: type[msgspec.Struct]
    security_schemes: Mapping[str, Any]
    #: Headers in every response, declared in the `default` response.
    headers: Mapping[str, Any]
    #: Errors that most operations can return. A status without other errors is described once, by
    #: the `default` response.
    general_errors: Sequence[Code] = ()
    request_id_example: str

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        more_responses: Sequence[type[msgspec.Struct]] = (),
        currency: str | None = None,
        build_field_example: Callable[[Any, str], Any] | None = None,
        build_response_example: Callable[[Any, type, str], Any] | None = None,
    ) -> None:
        _require_unique_ids(endpoints)
        self._endpoints = endpoints
        queries = [kind for item in endpoints if (kind := item.query_type) is not None]
        bodies = [kind for item in endpoints if (kind := item.body_struct) is not None]
        responses = [
            *(item.response_type for item in endpoints),
            *(kind for item in endpoints for kind in item.error_types.values()),
            *more_responses,
        ]
        self.schemas = Schemas(
            [*bodies, *queries],
            [self.error_body, *(kind for kind in responses if kind not in (None, bytes))],
            currency,
            build_field_example,
            build_response_example,
        )
        self._queries: dict[Any, dict[str, Schema]] = {
            kind: self.schemas.pop_query_parameters(kind) for kind in dict.fromkeys(queries)
        }
        self.schemas.describe_defaults()
        require_unique_names(self.schemas.components)
        self.header_references = {
            name: {"$ref": f"#/components/headers/{name}"} for name in self.headers
        }

    def build(self) -> dict[str, Any]:
        paths: dict[str, dict[str, Any]] = {}
        for endpoint in self._endpoints:
            operation = self._build_operation(endpoint)
            paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
        tags = dict.fromkeys(endpoint.tag for endpoint in self._endpoints)
        webhooks = self.build_webhooks()
        document: dict[str, Any] = {
            "openapi": "3.1.0",
            "info": {
                "title": self.title,
                "version": VERSION,
                "summary": self.summary,
                "description": self.introduction,
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            },
            "servers": [{"url": "/"}],
            "tags": [self._build_tag(name) for name in tags],
            "paths": paths,
            "components": {
                "schemas": self.schemas.components,
                "securitySchemes": self.security_schemes,
                "parameters": {
                    "RequestId": self._build_request_id_parameter(),
                    **self.list_parameter_components(),
                },
                "headers": self.headers,
            },
        }
        if webhooks:
            document["webhooks"] = webhooks
        share_repeated_parts(document)
        return document

    # Defined by the service

    def build_webhooks(self) -> dict[str, Any]:
        """Return the `webhooks` section, or {} if the service sends none."""
        return {}

    def list_parameter_components(self) -> dict[str, Any]:
        """Return parameters to which operations refer by name."""
        return {}

    def describe_query_parameter(self, query_type: Any, name: str, schema: Schema) -> str:
        return str(schema.get("description", ""))

    @abstractmethod
    def describe_access(self, endpoint: Endpoint) -> str: ...

    @abstractmethod
    def build_security(self, endpoint: Endpoint) -> list[dict[str, list[str]]]:
        """Return alternative security requirements. The schemes in each one are sent together."""

    @abstractmethod
    def describe_success(self, status: int) -> str: ...

    def build_request_example(self, kind: Any) -> Any:
        """Return an example request body, or None if there is none."""
        return getattr(kind, "EXAMPLE", None)

    @abstractmethod
    def list_implied_errors(self, endpoint: Endpoint) -> list[Code]:
        """Return the error codes that an endpoint's access and options imply."""

    @abstractmethod
    def build_error_response(self, status: int | None, codes: list[Code]) -> dict[str, Any]:
        """Return an error response's description and, optionally, examples.

        The status is None for the default response.
        """

    # Common to all services

    def _build_tag(self, name: str) -> dict[str, str]:
        text = self.tag_descriptions.get(name)
        return {"name": name} if text is None else {"name": name, "description": text}

    def _build_request_id_parameter(self) -> dict[str, Any]:
        return {
            "name": "X-Request-ID",
            "in": "header",
            "description": "Tracing ID, returned in the response. Generated if absent or invalid.",
            "schema": {
                "type": "string",
                "pattern": "^[A-Za-z0-9._-]{1,128}$",
                "examples": [self.request_id_example],
            },
        }

    def _build_operation(self, endpoint: Endpoint) -> dict[str, Any]:
        description = [endpoint.description, self.describe_access(endpoint)]
        operation: dict[str, Any] = {
            "operationId": endpoint.operation_id,
            "tags": [endpoint.tag],
            "summary": endpoint.summary,
            "description": "\n\n".join(filter(None, description)),
            "security": self.build_security(endpoint),
            "parameters": self.build_parameters(endpoint),
            "responses": self._build_responses(endpoint),
        }
        if endpoint.body_type is not None:
            operation["requestBody"] = self._build_request_body(endpoint)
        return operation

    def build_parameters(self, endpoint: Endpoint) -> list[dict[str, Any]]:
        parameters: list[dict[str, Any]] = [{"$ref": "#/components/parameters/RequestId"}]
        kind = endpoint.query_type
        fields = () if kind is None else msgspec.structs.fields(kind)
        required_names = {field.encode_name for field in fields if field.required}
        for name, schema in self._queries.get(kind, {}).items():
            parameter = {"name": name, "in": "query"}
            if description := self.describe_query_parameter(kind, name, schema):
                parameter["description"] = description
            required = {"required": True} if name in required_names else {}
            parameters.append({**parameter, **required, "schema": schema})
        for item in endpoint.parameters:
            described = {"description": item.description, "required": item.required}
            parameters.append(
                {"name": item.name, "in": item.location, **described, "schema": item.schema}
            )
        return parameters

    def _build_request_body(self, endpoint: Endpoint) -> dict[str, Any]:
        limit = {}
        if endpoint.body_limit > DEFAULT_BODY_BYTES:
            limit["description"] = f"At most {endpoint.body_limit // KIBIBYTE:,} KiB"
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
        example = self.build_request_example(kind)
        value = example and {name: item for name, item in example.items() if name not in limited}
        content = self._build_content(kind, value)
        body = {"required": required, "content": dict.fromkeys(endpoint.body_media, content)}
        return limit | body

    def build_response_headers(self, endpoint: Endpoint) -> dict[str, Any]:
        """Return the success response headers."""
        return {}

    def list_other_responses(self, endpoint: Endpoint) -> dict[int, Any]:
        """Return response types by status that the declaration implies besides its own."""
        return {}

    def _build_responses(self, endpoint: Endpoint) -> dict[str, Any]:
        """Return the responses by status, the usual one first and the default one last."""
        errors = self.group_errors(endpoint)
        general = set(self.general_errors) - {*endpoint.errors}
        own = {
            status: codes
            for status, codes in errors.items()
            if not codes or not general.issuperset(codes)
        }
        responses = {
            status: self._build_error(status, codes, endpoint.error_types.get(status))
            for status, codes in own.items()
        }
        for status in (endpoint.status, *endpoint.other_statuses):
            headers = self.build_response_headers(endpoint)
            responses[status] = {
                "description": self.describe_success(status),
                **({"headers": headers} if headers else {}),
                **self._build_response_content(endpoint),
            }
        for status, kind in self.list_other_responses(endpoint).items():
            schema = self.schemas.get(kind)
            if status == endpoint.status:
                schema = {"anyOf": [self.schemas.get(endpoint.response_type), schema]}
            responses[status] = {
                "description": self.describe_success(status),
                "content": {JSON_MEDIA_TYPE: {"schema": schema}},
            }
        statuses = dict.fromkeys([endpoint.status, *sorted(responses)])
        described = {str(status): responses[status] for status in statuses}
        if own != errors:
            error = self._build_error(None, [*self.general_errors])
            described["default"] = {**error, "headers": self.header_references}
        return described

    def _build_error(
        self, status: int | None, codes: list[Code], kind: Any = None
    ) -> dict[str, Any]:
        response = self.build_error_response(status, codes)
        content = {"schema": self.schemas.get(kind or self.error_body)}
        return {
            **response,
            "content": {JSON_MEDIA_TYPE: content | response.get("content", {})},
        }

    def _build_response_content(self, endpoint: Endpoint) -> dict[str, Any]:
        kind = endpoint.response_type
        if kind is None:
            return {}
        if kind is bytes:
            content = {media: {"schema": _build_file_schema(media)} for media in endpoint.media}
            return {"content": content}
        content = self._build_content(kind, getattr(kind, "EXAMPLE", None))
        if JSON_MEDIA_TYPE not in endpoint.media:
            return {"content": dict.fromkeys(endpoint.media, content)}
        files = {media: {"schema": _build_file_schema(media)} for media in endpoint.media}
        return {"content": files | {JSON_MEDIA_TYPE: content}}

    def _build_content(self, kind: Any, example: Any) -> dict[str, Any]:
        content: dict[str, Any] = {"schema": self.schemas.get(kind)}
        return content if example is None else {**content, "example": example}

    def group_errors(self, endpoint: Endpoint) -> dict[int, list[Code]]:
        """Return an endpoint's error codes, declared and implied, by status."""
        codes: list[Code] = []
        if endpoint.body_type is not None:
            codes += [Code.PAYLOAD_TOO_LARGE, Code.UNSUPPORTED_ENCODING, Code.INVALID_REQUEST]
        codes += self.list_implied_errors(endpoint)
        codes += endpoint.errors
        if endpoint.path_parameters:
            codes.append(Code.NOT_FOUND)  # the router rejects some values, such as overlong ones
        codes += [Code.RATE_LIMITED, Code.INTERNAL_ERROR, Code.SERVICE_UNAVAILABLE]
        by_status: dict[int, list[Code]] = {}
        for code in dict.fromkeys(codes):
            by_status.setdefault(TABLE[code][0], []).append(code)
        return by_status


def build_bearer_scheme(description: str, **more: str) -> dict[str, str]:
    return {"type": "http", "scheme": "bearer", "description": description, **more}


def build_header_scheme(name: str, description: str) -> dict[str, str]:
    return {"type": "apiKey", "in": "header", "name": name, "description": description}


def _build_file_schema(media: str) -> Schema:
    """Return the schema for a body that handlers receive or return as bytes."""
    if media == JSON_MEDIA_TYPE:
        return {"type": "object"}
    schema = {"type": "string"}
    return schema if media.startswith("text/") else {**schema, "format": "binary"}


def _require_unique_ids(endpoints: Sequence[Endpoint]) -> None:
    seen: dict[str, str] = {}
    for endpoint in endpoints:
        other = seen.setdefault(endpoint.operation_id, endpoint.name)
        if other != endpoint.name:
            raise TypeError(f"{other} and {endpoint.name} share an operation id")
