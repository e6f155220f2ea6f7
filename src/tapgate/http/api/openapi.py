"""The gateway's OpenAPI document."""

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

from tapgate.http.api import approval_reason
from tapgate.http.api.access import ROLES_BY_LETTER, Access
from tapgate.http.api.examples import (
    GENERIC_TEXT,
    build_example,
    build_response_example,
    get_path_example,
)
from tapgate.http.api.openapi_text import INTRODUCTION, PARAMETER_DESCRIPTIONS, TAG_DESCRIPTIONS
from tapgate.http.api.openapi_webhooks import (
    WebhookEvent,
    build_webhook_operations,
    build_webhook_parameters,
)
from tapgate.http.api.owner_access import Binding, get_owner_access
from tapgate.http.endpoint import Endpoint
from tapgate.http.field_checks import get_rule_and_type, is_struct
from tapgate.http.json_schema import Schema
from tapgate.http.openapi import DocumentBuilder, build_bearer_scheme, build_header_scheme
from tapgate_client.errors import TABLE, ApiError, Code
from tapgate_client.schemas.approvals import ApprovalResponse
from tapgate_client.schemas.common import ErrorBody
from tapgate_client.schemas.fields import CurrencyRule, IdempotencyKeyRule

_SUCCESS_DESCRIPTIONS: Final = {
    201: "Created",
    202: "Held by an approval rule: nothing was executed",
    204: "No content",
}
_SIGNATURE_SCHEMES: Final = {
    "pos": ("signingKey", "signingTime", "posSignature"),
    "partner": ("signingKey", "partnerId", "signingTime", "partnerSignature"),
}
_SERVICE_SIGNATURE_SCHEMES: Final = ("serviceName", "serviceTime", "serviceSignature")
_SIGNATURE_DESCRIPTION: Final = (
    "Hex HMAC-SHA-256 of method, path, timestamp and raw body, joined by newlines"
)
_REPLAY_HEADER: Final = {
    "Idempotent-Replayed": {
        "description": "`true` if this is the original response to a repeated request",
        "schema": {"type": "string"},
    }
}


def render_openapi_document(
    endpoints: Sequence[Endpoint], currency: str, events: Sequence[WebhookEvent] = ()
) -> bytes:
    document = _GatewayDocument(endpoints, events, currency).build()
    return msgspec.json.encode(document)


def _build_response_header(schema_type: str, description: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": schema_type}}


class _GatewayDocument(DocumentBuilder):
    title = "Tapgate"
    summary = "Cards, wallets, agents and merchants on a double-entry ledger"
    introduction = INTRODUCTION
    tag_descriptions = TAG_DESCRIPTIONS
    error_body = ErrorBody
    general_errors = (
        Code.INVALID_REQUEST,
        Code.UNAUTHORIZED,
        Code.FORBIDDEN,
        Code.PAYLOAD_TOO_LARGE,
        Code.UNSUPPORTED_ENCODING,
        Code.VALIDATION_FAILED,
        Code.RATE_LIMITED,
        Code.INTERNAL_ERROR,
        Code.SERVICE_UNAVAILABLE,
    )
    request_id_example = "checkout-1188"
    security_schemes = {  # noqa: RUF012 - constant
        "apiKey": build_bearer_scheme("`svc_live_...` or `svc_test_...`"),
        "adminToken": build_bearer_scheme(
            "From `POST /api/v1/admin/login` or `/refresh`", bearerFormat="JWT"
        ),
        "signingKey": build_header_scheme("X-API-Key-ID", "Signing key ID"),
        "signingTime": build_header_scheme(
            "X-Timestamp", "RFC 3339 in UTC, within 5 minutes of the server's clock"
        ),
        "posSignature": build_header_scheme("X-Signature", _SIGNATURE_DESCRIPTION),
        "partnerId": build_header_scheme("X-Partner-ID", "ID of the partner that owns the key"),
        "partnerSignature": build_header_scheme("X-Signature", _SIGNATURE_DESCRIPTION),
        "serviceName": build_header_scheme("X-Service-Name", "Calling service name"),
        "serviceTime": build_header_scheme(
            "X-Service-Timestamp", "Unix time in seconds, within 5 minutes of the server's clock"
        ),
        "serviceSignature": build_header_scheme(
            "X-Service-Signature", "Hex HMAC-SHA-256 of `METHOD|PATH|QUERY|TIMESTAMP`"
        ),
    }
    headers = {  # noqa: RUF012 - constant
        "X-Request-ID": _build_response_header("string", "Request tracing ID"),
        "X-RateLimit-Limit": _build_response_header("integer", "Rate limit in requests per second"),
        "X-RateLimit-Remaining": _build_response_header("integer", "Requests left in the burst"),
        "X-RateLimit-Reset": _build_response_header(
            "integer", "Unix time in seconds when the full burst is available again"
        ),
    }

    def __init__(
        self, endpoints: Sequence[Endpoint], events: Sequence[WebhookEvent], currency: str
    ) -> None:
        super().__init__(
            endpoints,
            more_responses=[ApprovalResponse, *(event.record_type for event in events)],
            currency=currency,
            build_field_example=build_example,
            build_response_example=_build_text_example,
        )
        self._events = events

    def build_webhooks(self) -> dict[str, Any]:
        return build_webhook_operations(self._events, self.schemas)

    def list_parameter_components(self) -> dict[str, Any]:
        return {
            "IdempotencyKey": _build_idempotency_key_parameter(),
            "ApprovalReason": approval_reason.build_parameter(),
            **build_webhook_parameters(),
        }

    def describe_query_parameter(self, query_type: Any, name: str, schema: Schema) -> str:
        names = (f"{query_type.__name__}.{name}", name)
        found = next((text for key in names if (text := PARAMETER_DESCRIPTIONS.get(key))), None)
        return found or super().describe_query_parameter(query_type, name, schema)

    def describe_access(self, endpoint: Endpoint) -> str:
        access = endpoint.access
        if access.public:
            return "Public."
        callers = _describe_callers(access)
        sentences = [f"Access: {callers}."] if callers else []
        owners = get_owner_access(endpoint)
        if owners.binding is not Binding.NEVER:
            names = sorted(owners.role_names | owners.key_role_names)
            sentences.append(f"Owner roles: {', '.join(names)}.")
        fields: dict[Access, list[str]] = {}
        for name, field_access in endpoint.field_access.items():
            fields.setdefault(field_access, []).append(f"`{name}`")
        for field_access, names in fields.items():
            sentences.append(f"To set {', '.join(names)}: {_describe_callers(field_access)}.")
        if endpoint.step_up:
            condition = ""
            if not isinstance(endpoint.step_up, bool):
                condition = " to set " + " or ".join(f"`{name}`" for name in endpoint.step_up)
            sentences.append(
                f"An admin with a second factor must have verified it recently{condition}."
            )
        return " ".join(sentences)

    def build_security(self, endpoint: Endpoint) -> list[dict[str, list[str]]]:
        access: Access = endpoint.access
        choices: list[dict[str, list[str]]] = []
        owners = get_owner_access(endpoint)
        scopes = [access.scope] if access.scope else list(owners.scopes)
        roles = access.role_names | owners.role_names
        if scopes:
            choices.append({"apiKey": scopes})
        if roles:
            choices.append({"adminToken": sorted(roles)})
        if access.hmac:
            choices.append({name: [] for name in _SIGNATURE_SCHEMES[access.hmac]})
        if access.service:
            choices.append({name: [] for name in _SERVICE_SIGNATURE_SCHEMES})
        return choices

    def build_parameters(self, endpoint: Endpoint) -> list[dict[str, Any]]:
        request_id, *others = super().build_parameters(endpoint)
        parameters: list[dict[str, Any]] = []
        if endpoint.moves_money:
            parameters.append({"$ref": "#/components/parameters/IdempotencyKey"})
        if endpoint.guard is not None:
            parameters.append({"$ref": "#/components/parameters/ApprovalReason"})
        for name in endpoint.path_parameters:
            schema: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 255}
            schema["examples"] = [get_path_example(endpoint, name)]
            parameters.append(
                {
                    "name": name,
                    "in": "path",
                    "description": _describe_path_parameter(endpoint.path, name),
                    "required": True,
                    "schema": schema,
                }
            )
        return [request_id, *parameters, *others]

    def build_response_headers(self, endpoint: Endpoint) -> dict[str, Any]:
        return _REPLAY_HEADER if endpoint.moves_money else {}

    def list_other_responses(self, endpoint: Endpoint) -> dict[int, Any]:
        return {} if endpoint.guard is None else {202: ApprovalResponse}

    def describe_success(self, status: int) -> str:
        return _SUCCESS_DESCRIPTIONS.get(status, "Success")

    def build_request_example(self, kind: Any) -> Any:
        return build_example(kind)

    def list_implied_errors(self, endpoint: Endpoint) -> list[Code]:
        codes: list[Code] = []
        access: Access = endpoint.access
        if endpoint.query_type is not None or (endpoint.body_type and not endpoint.invalid_is_400):
            codes.append(Code.VALIDATION_FAILED)
        if not access.public:
            codes += [Code.UNAUTHORIZED, Code.FORBIDDEN]
        if access.hmac == "pos":
            codes += [Code.PROCESSOR_SUSPENDED, Code.TERMINAL_BLOCKED]
        if access.hmac == "partner":
            codes.append(Code.PARTNER_SUSPENDED)
        if endpoint.step_up:
            codes.append(Code.OTP_REQUIRED)
        if endpoint.moves_money or _has_currency(endpoint.body_type):
            codes.append(Code.CURRENCY_NOT_SUPPORTED)
        if endpoint.moves_money:
            codes.append(Code.DUPLICATE_REQUEST)
        return codes

    def build_error_response(self, status: int | None, codes: list[Code]) -> dict[str, Any]:
        # The examples describe each of several codes.
        several = "Error" if status is None else HTTPStatus(status).phrase
        return {
            "description": TABLE[codes[0]][1] if len(codes) == 1 else several,
            "content": {
                "examples": {str(code): {"value": ApiError(code).body()} for code in codes}
            },
        }


def _has_currency(body: Any) -> bool:
    return is_struct(body) and any(
        isinstance(get_rule_and_type(field.type)[0], CurrencyRule)
        for field in msgspec.structs.fields(body)
    )


def _build_text_example(kind: Any, owner: type, name: str) -> Any:
    """Return an example for a response field, or None if it would add nothing."""
    example = build_response_example(kind, owner, name)
    return None if example == GENERIC_TEXT else example


def _describe_path_parameter(path: str, name: str) -> str:
    """Return a table's description, or the ID's kind: `/agents/{id}` is an agent's ID."""
    if name in PARAMETER_DESCRIPTIONS:
        return PARAMETER_DESCRIPTIONS[name]
    segment = path.partition(f"/{{{name}}}")[0].rpartition("/")[2]
    noun = segment.removesuffix("s") if name == "id" else name.removesuffix("_id")
    words = re.sub("[-_]", " ", noun)
    return f"{words[0].upper()}{words[1:]} ID".replace("Api ", "API ").replace("User ", "Admin ")


def _describe_roles(roles: frozenset[str]) -> str:
    if roles == {*ROLES_BY_LETTER.values()}:
        return "an admin with any role"
    return f"an admin ({', '.join(sorted(roles))})"


def _describe_callers(access: Access) -> str:
    kinds = [
        access.scope and f"an API key with the scope `{access.scope}`",
        access.roles and _describe_roles(access.role_names),
        access.hmac == "pos" and "a processor's or terminal's signature",
        access.hmac == "partner" and "a partner's signature",
        access.service and "an internal service's signature",
    ]
    return "; ".join(kind for kind in kinds if kind)


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
