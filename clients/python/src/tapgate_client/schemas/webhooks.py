"""Webhook events, endpoints and deliveries."""

from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

from tapgate_client.schemas.common import Redacted
from tapgate_client.schemas.fields import Choice, IntegerRange, ListLength
from tapgate_client.schemas.owners import OptionalOwnerId, OwnerIdField
from tapgate_client.schemas.pagination import PageQuery
from tapgate_client.schemas.periods import PeriodBound
from tapgate_client.schemas.urls import TargetUrlRule
from tapgate_client.schemas.values import Example, Id, Time, Url


def get_resource_type(event_type: str) -> str:
    return event_type.partition(".")[0]


class EventType(msgspec.Struct, frozen=True):
    """Event type that webhook endpoints can subscribe to."""

    name: str
    description: str

    @property
    def resource_type(self) -> str:
        """Type of the record in the event's `data`: `transaction`, `card`, ..."""
        return get_resource_type(self.name)


ENDPOINT_DISABLED: Final = "webhook_endpoint.disabled"

#: All event types that endpoints can subscribe to, in the order in which the documentation and the
#: console list them.
WEBHOOK_EVENT_CATALOG: Final = (
    EventType("transaction.completed", "Money moved, possibly after a review."),
    EventType("transaction.failed", "A transaction was declined, possibly after a review."),
    EventType("transaction.under_review", "Funds are on hold until a review decision."),
    EventType("transaction.refunded", "A payment was refunded in part or in full."),
    EventType("transaction.reversed", "A transaction was reversed in part or in full."),
    EventType("card.linked", "A card was linked to a subscriber."),
    EventType("card.blocked", "A card was blocked or marked as lost."),
    EventType("card.unblocked", "A card was unblocked."),
    EventType("card.personalized", "A tap confirmed a card's new keys."),
    EventType(
        "card.clone_suspected",
        "A proof was rejected as used or not genuine. Repeats of an open alert send no event.",
    ),
    EventType("subscriber.created", "A subscriber registered."),
    EventType("subscriber.blocked", "A subscriber was blocked."),
    EventType("subscriber.unblocked", "A subscriber was unblocked."),
    EventType("subscriber.kyc_changed", "A subscriber's KYC level or status changed."),
    EventType(
        "alert.created", "A compliance alert was created. Repeats of an open alert send no event."
    ),
    EventType("alert.resolved", "A compliance alert was resolved."),
    EventType("support.requested", "A customer asked for support. Later messages send no event."),
    EventType("dispute.created", "A cardholder contests a card payment."),
    EventType("dispute.answered", "The merchant answered a dispute, possibly once more."),
    EventType("dispute.decided", "A dispute was refunded, rejected or withdrawn."),
    EventType("approval.created", "A request waits for the approval of another admin."),
    EventType("approval.executed", "An approved request was executed."),
    EventType("approval.rejected", "An admin rejected a request."),
    EventType("agent.float_low", "An agent's float fell below TAPGATE_FLOAT_LOW."),
    EventType("payout.requested", "A payout was requested."),
    EventType("payout.paid", "The bank has paid a payout."),
    EventType("payout.returned", "The bank returned a payout to its owner."),
    EventType("payout.cancelled", "A payout was cancelled."),
    EventType("batch.completed", "All lines of a batch were paid or failed."),
    EventType("day.closed", "A day of the ledger was closed."),
    EventType("reconciliation.unmatched", "A bank statement has lines that match nothing."),
    EventType("processor.suspended", "A processor was suspended."),
    EventType(ENDPOINT_DISABLED, "A webhook endpoint was disabled."),
)
WEBHOOK_EVENT_TYPES: Final = tuple(event.name for event in WEBHOOK_EVENT_CATALOG)

ALL_EVENTS: Final = "*"
#: Type of a test event, sent to one endpoint on request. Endpoints cannot subscribe to it.
TEST_EVENT: Final = "webhook.test"

MAX_GRACE_SECONDS: Final = 86_400


class WebhookEndpointStatus(StrEnum):
    """Webhook endpoint status. Events are sent only to active endpoints."""

    ACTIVE = "active"
    PAUSED = "paused"  # by an admin; new events are queued
    DISABLED = "disabled"  # by the gateway; new events are not queued


class WebhookDeliveryStatus(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"
    CANCELLED = "cancelled"  # in flight without success while the endpoint was disabled


class WebhookAttemptError(StrEnum):
    """Why an attempt failed."""

    HTTP_STATUS = "http_status"  # a status other than 2xx
    TIMEOUT = "timeout"
    HOST_NOT_FOUND = "host_not_found"
    CONNECTION_REFUSED = "connection_refused"
    CONNECTION_FAILED = "connection_failed"
    CONNECTION_CLOSED = "connection_closed"  # without a response
    TLS_FAILED = "tls_failed"
    INVALID_RESPONSE = "invalid_response"
    URL_REJECTED = "url_rejected"  # for example, because it points to a private network
    INTERNAL = "internal_error"  # in the gateway; nothing was sent


EndpointUrl = Annotated[str, TargetUrlRule()]
EventFilter = Annotated[str, Choice(*WEBHOOK_EVENT_TYPES, ALL_EVENTS, name="WebhookEventFilter")]
DeliveredEventType = Annotated[
    str, Choice(*WEBHOOK_EVENT_TYPES, TEST_EVENT, name="WebhookEventType")
]
EventFilters = Annotated[list[EventFilter], ListLength(1, 100)]
SettableStatusField = Annotated[
    WebhookEndpointStatus,
    Choice(
        WebhookEndpointStatus.ACTIVE,
        WebhookEndpointStatus.PAUSED,
        name="SettableWebhookEndpointStatus",
    ),
]


class NewWebhookEndpoint(msgspec.Struct, kw_only=True):
    """New webhook endpoint. With `owner_id`, only for events that name this owner."""

    url: EndpointUrl
    events: EventFilters
    owner_id: OwnerIdField | None = None


class WebhookEndpointUpdate(msgspec.Struct, kw_only=True):
    """Fields to change. Absent fields keep their values."""

    url: EndpointUrl | None = None
    events: EventFilters | None = None
    status: SettableStatusField | None = None


class SecretRotation(msgspec.Struct, kw_only=True):
    grace_seconds: Annotated[int, IntegerRange(0, MAX_GRACE_SECONDS)] = 0


class WebhookEndpointRecord(msgspec.Struct, frozen=True, kw_only=True):
    id: Id
    url: Url
    events: list[EventFilter]
    #: Owner whose events the endpoint receives; null for an endpoint of the platform.
    owner_id: OptionalOwnerId
    status: WebhookEndpointStatus
    status_reason: str | None
    status_changed_at: Time
    #: Start of the current series of failed attempts; null if the last attempt succeeded.
    failing_since: str | None
    last_failure_at: Time | None
    #: Null for endpoints that were created before this was recorded.
    created_by: str | None
    created_by_name: str | None
    #: The last secret rotation; null if there was none.
    rotated_by: str | None
    rotated_by_name: str | None
    rotated_at: Time | None


class WebhookEndpointFilters(PageQuery, kw_only=True):
    #: Whether the endpoint is disabled, or its last attempt failed.
    failing: bool | None = None


class WebhookDeliveryFilters(PageQuery, kw_only=True):
    status: WebhookDeliveryStatus | None = None


class PeriodRedelivery(msgspec.Struct, kw_only=True):
    """Deliveries to send again: those created in a period of at most 31 days, with this status."""

    from_: Annotated[PeriodBound, Example("2026-01-31T10:00:00Z")] = msgspec.field(name="from")
    to: Annotated[PeriodBound, Example("2026-01-31T12:00:00Z")]
    status: WebhookDeliveryStatus = WebhookDeliveryStatus.FAILED


class PeriodRedeliveryResult(msgspec.Struct, kw_only=True):
    """`redelivered` counts all repetitions of the request. Repeat it until `complete` is true."""

    redelivered: int
    complete: bool


class WebhookEndpointWithSecret(Redacted, WebhookEndpointRecord, frozen=True, kw_only=True):
    """Webhook endpoint with its secret, returned only on creation and on rotation."""

    secret: Annotated[str, Example("returned only once")]


class DisabledEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """`data` of `webhook_endpoint.disabled`.

    The URL is omitted, because endpoints of other integrators can receive the event too.
    """

    id: Id
    status: WebhookEndpointStatus
    status_reason: str | None
    status_changed_at: Time


class TestEventData(msgspec.Struct, frozen=True, kw_only=True):
    """`data` of a test event."""

    webhook_endpoint_id: Id


class WebhookAttempt(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    attempted_at: Time
    http_status: int | None
    duration_ms: int | None
    #: Null if the attempt succeeded.
    error: WebhookAttemptError | None


class WebhookDelivery(msgspec.Struct, frozen=True, kw_only=True):
    id: Id
    event: DeliveredEventType
    status: WebhookDeliveryStatus
    attempts: int
    last_status: int | None
    #: Why the last attempt failed; null if none was made or the event is delivered.
    last_error: WebhookAttemptError | None
    duration_ms: int | None
    response: str | None
    created_at: Time
    #: Null unless the delivery is pending.
    next_attempt_at: Time | None


class WebhookDeliveryDetails(WebhookDelivery, frozen=True, kw_only=True):
    """A delivery with its attempts and its request body.

    `payload` is null if the event's record cannot be loaded. Personal data of subscribers who are
    restricted now is omitted.
    """

    #: The newest 30 at most, oldest first.
    attempt_log: list[WebhookAttempt]
    payload: dict[str, Any] | None
