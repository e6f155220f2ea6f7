"""Webhook endpoint and delivery records."""

from tapgate.client.records.base import Record, SecretRecord


class WebhookEndpoint(Record, frozen=True, kw_only=True):
    id: str
    url: str
    events: list[str]
    status: str
    status_reason: str | None
    status_changed_at: str


class WebhookEndpointWithSecret(SecretRecord, frozen=True, kw_only=True):
    """A webhook endpoint with its secret, returned only by `create` and `rotate_secret`."""

    id: str
    url: str
    events: list[str]
    status: str
    status_reason: str | None
    status_changed_at: str
    secret: str


class Delivery(Record, frozen=True, kw_only=True):
    """Delivery of an event.

    `duration_ms` and `response`, the first 1 KiB of the body, describe the last attempt.
    """

    id: str
    event: str
    status: str
    attempts: int
    last_status: int | None
    duration_ms: int | None
    response: str | None
    created_at: str
