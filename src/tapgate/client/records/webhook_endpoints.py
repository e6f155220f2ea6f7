"""Where events are sent, and what was."""

from tapgate.client.records.base import Record, SecretRecord


class WebhookEndpoint(Record, frozen=True, kw_only=True):
    id: str
    url: str
    events: list[str]


class WebhookEndpointCreated(SecretRecord, frozen=True, kw_only=True):
    id: str
    url: str
    events: list[str]
    secret: str


class Delivery(Record, frozen=True, kw_only=True):
    id: str
    event: str
    status: str
    attempts: int
    last_status: int | None
    created_at: str
