"""The messenger's OpenAPI document."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

from tapgate.http.endpoint import Endpoint
from tapgate.http.openapi import DocumentBuilder
from tapgate.messenger.routes.access import SECURITY_SCHEMES
from tapgate.messenger.web import ErrorBody
from tapgate_client.errors import Code

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
#: Descriptions for statuses with a special meaning in the provider's protocol.
_PROVIDER_STATUS_PHRASES: Final = {
    421: "Cannot decrypt the request",
    427: "The form can no longer be used",
    432: "Invalid signature",
}


def build_document(endpoints: Sequence[Endpoint]) -> bytes:
    return msgspec.json.encode(_MessengerDocument(endpoints).build())


class _MessengerDocument(DocumentBuilder):
    title = "Tapgate messenger"
    summary = "Wallets and cards in chat"
    introduction = _INTRODUCTION
    tag_descriptions = {  # noqa: RUF012 - constant
        "Bridge": "Messages from bridges, with plain-text replies.",
        "Provider": "Webhooks for the channel's provider.",
        "Messages": "Template messages from internal services.",
        "Simulator": "Simulated phones. Not available in production.",
        "System": "Health check, OpenAPI document and metrics.",
    }
    error_body = ErrorBody
    security_schemes = SECURITY_SCHEMES
    headers = {  # noqa: RUF012 - constant
        "X-Request-ID": {"description": "Request ID", "schema": {"type": "string"}}
    }
    request_id_example = "message-1188"

    def describe_access(self, endpoint: Endpoint) -> str:
        description: str = endpoint.access.description
        return description

    def build_security(self, endpoint: Endpoint) -> list[dict[str, list[str]]]:
        return [{name: [] for name in choice} for choice in endpoint.access.security]

    def build_response_headers(self, endpoint: Endpoint) -> dict[str, Any]:
        return self.header_references

    def describe_success(self, status: int) -> str:
        return _PROVIDER_STATUS_PHRASES.get(status) or HTTPStatus(status).phrase

    def list_implied_errors(self, endpoint: Endpoint) -> list[Code]:
        return []

    def group_errors(self, endpoint: Endpoint) -> dict[int, list[Code]]:
        return super().group_errors(endpoint) | {
            status: [] for status in endpoint.access.error_statuses
        }

    def build_error_response(self, status: int | None, codes: list[Code]) -> dict[str, Any]:
        assert status is not None
        return {"description": self.describe_success(status)}
