"""Webhook endpoints and deliveries: records, event encoding and signing."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from tapgate.auth.owners import build_owner
from tapgate.core.records import build_record
from tapgate_client import clock, ids, signing
from tapgate_client.schemas.webhooks import (
    DisabledEndpoint,
    WebhookAttempt,
    WebhookAttemptError,
    WebhookDelivery,
    WebhookDeliveryDetails,
    WebhookDeliveryStatus,
    WebhookEndpointRecord,
    WebhookEndpointWithSecret,
)

#: An endpoint whose failure streak reaches this duration is disabled.
DISABLE_AFTER: Final = timedelta(days=5)
#: After a longer gap without a failed attempt, the next failure starts a new failure streak. The
#: value exceeds a delivery's longest scheduled delay between two attempts.
MAX_FAILURE_GAP: Final = timedelta(hours=36)


class StatusReason(StrEnum):
    PAUSED = "Paused by an administrator"
    GONE = "The endpoint responded with 410 Gone"
    FAILING = "No delivery succeeded for 5 days"


class LeasedDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """Delivery leased to this process, with its event and the endpoint as loaded at the lease."""

    id: int
    endpoint_id: int
    attempts: int
    attempts_before: int
    next_attempt_at: datetime  # when the lease expires
    event_id: int
    event: str
    subject_id: int | None
    data: str | None
    occurred_at: datetime
    url: str
    secret: bytes
    previous_secret: bytes | None
    previous_secret_expires_at: datetime | None
    status_changed_at: datetime


class AttemptResult(msgspec.Struct, frozen=True, kw_only=True):
    problem: str | None  # None if the attempt succeeded
    error: WebhookAttemptError | None = None
    status: int | None = None
    duration_ms: int | None = None
    response: str | None = None
    retry_after: timedelta | None = None

    @property
    def is_internal(self) -> bool:
        """Whether an error in the gateway prevented sending anything."""
        return self.error is WebhookAttemptError.INTERNAL


class LoggedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    attempted_at: datetime
    http_status: int | None
    duration_ms: int | None
    error: WebhookAttemptError | None


def to_record(row: Mapping[str, Any]) -> WebhookEndpointRecord:
    return build_record(WebhookEndpointRecord, row, id=_encode_id(row), owner_id=_get_owner_id(row))


def to_record_with_secret(row: Mapping[str, Any], secret: str) -> WebhookEndpointWithSecret:
    return build_record(
        WebhookEndpointWithSecret,
        row,
        id=_encode_id(row),
        owner_id=_get_owner_id(row),
        secret=secret,
    )


def to_audit_record(row: Mapping[str, Any]) -> WebhookEndpointRecord:
    """Return the record for the audit log.

    The URL's query, which may be secret, and the delivery state are removed.
    """
    return msgspec.structs.replace(
        to_record(row), url=strip_query(row["url"]), failing_since=None, last_failure_at=None
    )


def to_disabled_endpoint(row: Mapping[str, Any]) -> DisabledEndpoint:
    return build_record(DisabledEndpoint, row, id=_encode_id(row))


def strip_query(url: str) -> str:
    return urlsplit(url)._replace(query="", fragment="").geturl()


def _get_owner_id(row: Mapping[str, Any]) -> str | None:
    owner = build_owner(row["owner_type"], row["owner_id"])
    return None if owner is None else owner.public_id


def _encode_id(row: Mapping[str, Any]) -> str:
    return ids.encode(ids.WEBHOOK_ENDPOINT, row["id"])


def to_delivery(row: Mapping[str, Any], *, hide_response: bool = False) -> WebhookDelivery:
    log = _list_attempts(row)
    return build_record(
        WebhookDelivery,
        row,
        id=ids.encode(ids.DELIVERY, row["id"]),
        last_error=log[-1].error if log else None,
        response=None if hide_response else row["response"],
    )


def to_delivery_details(
    row: Mapping[str, Any], body: bytes | None, *, hide_response: bool
) -> WebhookDeliveryDetails:
    """Return a delivery's record with its request body, if that is known."""
    delivery = to_delivery(row, hide_response=hide_response)
    return WebhookDeliveryDetails(
        **msgspec.structs.asdict(delivery),
        attempt_log=_list_attempts(row),
        payload=None if body is None else msgspec.json.decode(body),
    )


def _list_attempts(row: Mapping[str, Any]) -> list[WebhookAttempt]:
    """Return the logged attempts. For a delivered event, the last one is the delivery itself."""
    logged = msgspec.convert(row["attempt_log"] or [], list[LoggedAttempt])
    if row["status"] == WebhookDeliveryStatus.DELIVERED:
        logged.append(
            LoggedAttempt(
                number=row["attempts"],
                attempted_at=row["ended_at"],
                http_status=row["last_status"],
                duration_ms=row["duration_ms"],
                error=None,
            )
        )
    return [build_record(WebhookAttempt, attempt) for attempt in logged]


def build_secret_context(endpoint_id: int) -> bytes:
    """Return the vault context that binds sealed secrets to their endpoint."""
    return b"webhook endpoint %d" % endpoint_id


def encode_body(event: str, occurred_at: datetime, data: str) -> bytes:
    """Return the request body. `data` is the stored JSON text or its redacted form.

    Retries are byte-identical unless the redaction changes between them.
    """
    return msgspec.json.encode(
        {
            "type": event,
            "timestamp": clock.format_rfc3339(occurred_at),
            "data": msgspec.Raw(data.encode()),
        }
    )


def build_headers(
    delivery_id: int, secrets: list[str], body: bytes, now: datetime
) -> dict[str, str]:
    """Return the Standard Webhooks headers for one attempt, with one signature per secret."""
    public_id, timestamp = ids.encode(ids.DELIVERY, delivery_id), int(now.timestamp())
    signatures = (
        signing.standard_webhook_signature(secret, public_id, timestamp, body) for secret in secrets
    )
    return {
        "Content-Type": "application/json",
        "webhook-id": public_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
    }
