"""What happened here, for whoever asked to be told: written with the change, delivered later."""

from typing import Any, Final

import msgspec

from tapgate.edge.services import Services

TYPES: Final = (
    "transaction.completed",
    "transaction.failed",
    "transaction.under_review",
    "transaction.refunded",
    "card.linked",
    "card.blocked",
    "card.unblocked",
    "subscriber.created",
    "subscriber.blocked",
    "subscriber.unblocked",
    "subscriber.kyc_changed",
    "alert.created",
    "alert.resolved",
    "agent.float_low",
    "processor.suspended",
)

_TELL: Final = """
    WITH listeners AS (
        SELECT id FROM webhook_endpoints
        WHERE deleted_at IS NULL AND ($2 = ANY (events) OR '*' = ANY (events))
    ), event AS (
        INSERT INTO events (id, type, data, occurred_at)
        SELECT $1, $2, $3, $4 WHERE EXISTS (SELECT FROM listeners)
        RETURNING id
    )
    INSERT INTO deliveries (event_id, endpoint_id, next_attempt_at, created_at)
    SELECT event.id, listeners.id, $4, $4 FROM event, listeners"""


async def publish(tx: Any, services: Services, event_type: str, record: msgspec.Struct) -> None:
    """Part of the database transaction of the change; the record is told as it is now."""
    assert event_type in TYPES
    data = msgspec.to_builtins(record)
    await tx.execute(_TELL, services.new_id(), event_type, data, services.clock())
