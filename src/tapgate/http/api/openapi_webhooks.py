"""The OpenAPI document's `webhooks` section: requests sent to webhook endpoints."""

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from tapgate.http.json_schema import Schemas, build_reference

_SIGNATURE_DESCRIPTION: Final = (
    "One or more signatures separated by spaces (two during a secret rotation's grace period)."
    " Each is `v1,` followed by the base64 HMAC-SHA-256 of"
    " `{webhook-id}.{webhook-timestamp}.{body}`. The key is the part of the endpoint's secret after"
    " `whsec_`, base64-decoded. Accept the request if one signature matches. Compare in constant"
    " time."
)
_HEADERS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "webhook-id": (
        "ID of this event for this endpoint, the same in every attempt. Process each ID once.",
        {"type": "string", "examples": ["dlv_0000000000021"]},
    ),
    "webhook-timestamp": (
        "Unix time of the attempt in seconds. Reject times more than 5 minutes from your clock.",
        {"type": "string", "pattern": "^[0-9]+$", "examples": ["1769854531"]},
    ),
    "webhook-signature": (
        _SIGNATURE_DESCRIPTION,
        {"type": "string", "examples": ["v1,OFMG/rig9XoevJpN3u7miD6NgViOWV3GKBm7YfiL5TQ="]},
    ),
}
_RESPONSE_DESCRIPTIONS: Final = {
    "2XX": "Delivered. Respond within 10 seconds. The first 1 KiB of the body is stored.",
    "410": "The endpoint is disabled and receives no more events.",
    "default": "Retried on a schedule for about three days. After 429 and 503, retried no earlier"
    " than `Retry-After` specifies. Redirects are not followed.",
}


class WebhookEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Event type and the record in its payload."""

    name: str
    description: str
    record_type: type[msgspec.Struct]


def build_webhook_parameters() -> dict[str, Any]:
    """Return the webhook request headers, for `components.parameters`."""
    return {
        _get_component_name(name): {
            "name": name,
            "in": "header",
            "required": True,
            "description": description,
            "schema": schema,
        }
        for name, (description, schema) in _HEADERS.items()
    }


def build_webhook_operations(events: Iterable[WebhookEvent], schemas: Schemas) -> dict[str, Any]:
    """Return the `webhooks` object, one operation per event type."""
    return {event.name: {"post": _build_operation(event, schemas)} for event in events}


def _build_operation(event: WebhookEvent, schemas: Schemas) -> dict[str, Any]:
    return {
        "operationId": f"on_{event.name.replace('.', '_')}",
        "summary": event.description.rstrip("."),
        "security": [],  # the signature header authenticates the sender
        "parameters": [
            {"$ref": f"#/components/parameters/{_get_component_name(name)}"} for name in _HEADERS
        ],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _add_payload_component(event, schemas)}},
        },
        "responses": {
            status: {"description": description}
            for status, description in _RESPONSE_DESCRIPTIONS.items()
        },
    }


def _add_payload_component(event: WebhookEvent, schemas: Schemas) -> dict[str, Any]:
    """Add the payload component, such as `TransactionCompletedEvent`, and return a reference."""
    words = re.split(r"[._]", event.name)
    name = "".join(word.capitalize() for word in (*words, "event"))
    schemas.components[name] = _build_payload_schema(event, schemas)
    return build_reference(name)


def _build_payload_schema(event: WebhookEvent, schemas: Schemas) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["type", "timestamp", "data"],
        "properties": {
            "type": {"type": "string", "const": event.name},
            "timestamp": {
                "type": "string",
                "format": "date-time",
                "description": "When the event occurred",
            },
            "data": schemas.get(event.record_type),
        },
    }


def _get_component_name(header: str) -> str:
    return "".join(word.capitalize() for word in header.split("-"))
