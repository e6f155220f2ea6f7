"""Webhook event catalog and publishing.

An event is written in the database transaction of the change that it reports, and delivered later.
"""

from typing import Final

import msgspec

from tapgate.store.transaction import Transaction


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
    EventType("card.linked", "A card was linked to a subscriber."),
    EventType("card.blocked", "A card was blocked or marked as lost."),
    EventType("card.unblocked", "A card was unblocked."),
    EventType("subscriber.created", "A subscriber registered."),
    EventType("subscriber.blocked", "A subscriber was blocked."),
    EventType("subscriber.unblocked", "A subscriber was unblocked."),
    EventType("subscriber.kyc_changed", "A subscriber's KYC level or status changed."),
    EventType(
        "alert.created", "A compliance alert was created. Repeats of an open alert send no event."
    ),
    EventType("alert.resolved", "A compliance alert was resolved."),
    EventType("agent.float_low", "An agent's float fell below TAPGATE_FLOAT_LOW."),
    EventType("processor.suspended", "A processor was suspended."),
    EventType(ENDPOINT_DISABLED, "A webhook endpoint was disabled."),
)
WEBHOOK_EVENT_TYPES: Final = tuple(event.name for event in WEBHOOK_EVENT_CATALOG)

_PUBLISH_SQL: Final = """
    WITH listeners AS (
        SELECT id FROM webhook_endpoints
        WHERE deleted_at IS NULL AND status <> 'disabled'
          AND ($2 = ANY (events) OR '*' = ANY (events))
    ), event AS (
        INSERT INTO events (id, type, data, occurred_at)
        SELECT $1, $2, $3, $4 WHERE EXISTS (SELECT FROM listeners)
        RETURNING id
    )
    INSERT INTO deliveries (event_id, endpoint_id, next_attempt_at, created_at)
    SELECT event.id, listeners.id, $4, $4 FROM event, listeners"""


def get_resource_type(event_type: str) -> str:
    return event_type.partition(".")[0]


async def publish(tx: Transaction, event_type: str, record: msgspec.Struct) -> None:
    """Write an event, with this record as data, and a delivery for each subscribed endpoint.

    `tx` is the database transaction of the change. Nothing is written if no active or paused
    endpoint subscribes to the event type.
    """
    assert event_type in WEBHOOK_EVENT_TYPES
    data = msgspec.to_builtins(record)
    await tx.execute(_PUBLISH_SQL, tx.new_id(), event_type, data, tx.now())
