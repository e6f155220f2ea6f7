"""Publishes webhook events.

An event is written in the same database transaction as the change it reports, and delivered later.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tapgate.auth.owners import parse_owner
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.schemas.webhooks import WEBHOOK_EVENT_TYPES, get_resource_type

_PUBLISH_SQL: Final = """
    WITH listeners AS (
        SELECT id FROM webhook_endpoints
        WHERE deleted_at IS NULL AND status <> 'disabled'
          AND ($2 = ANY (events) OR '*' = ANY (events))
          AND (owner_id IS NULL OR owner_id = $5)
    ), event AS (
        INSERT INTO events (id, type, data, occurred_at)
        SELECT $1, $2, $3, $4 WHERE EXISTS (SELECT FROM listeners)
        RETURNING id
    )
    INSERT INTO deliveries (event_id, endpoint_id, next_attempt_at, created_at)
    SELECT event.id, listeners.id, $4, $4 FROM event, listeners"""

#: Field that names the processor, partner or agent, by resource type. The ledger publishes events
#: of transactions and agents itself.
_OWNER_FIELDS: Final[Mapping[str, str]] = {
    "agent": "id",
    "dispute": "processor_id",
    "payout": "owner_id",
    "processor": "id",
    "transaction": "processor_id",
}


async def publish_data(tx: Transaction, event_type: str, data: Mapping[str, Any]) -> int:
    """Write an event with a delivery for each subscribed endpoint; return their number.

    An endpoint of an owner receives only events that name the owner.
    """
    owner = parse_owner(str(data.get(_OWNER_FIELDS.get(get_resource_type(event_type), ""))))
    status: str = await tx.execute(
        _PUBLISH_SQL,
        tx.new_id(),
        event_type,
        data,
        tx.now(),
        None if owner is None else owner.id,
    )
    return int(status.rpartition(" ")[2])


async def publish(tx: Transaction, event_type: str, record: msgspec.Struct) -> None:
    """Write an event, with this record as data, and a delivery for each subscribed endpoint.

    `tx` is the change's database transaction. Nothing is written if no active or paused
    endpoint subscribes to the event type.
    """
    assert event_type in WEBHOOK_EVENT_TYPES
    await publish_data(tx, event_type, msgspec.to_builtins(record))
