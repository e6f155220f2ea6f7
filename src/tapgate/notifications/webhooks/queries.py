"""The SQL about webhook endpoints, and about deliveries as their endpoint's owner sees them."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import asyncpg

from tapgate.notifications.webhooks.model import no_such_delivery, no_such_endpoint
from tapgate.store.database import Database

_ENDPOINT = "id, url, events"
_DELIVERY = """deliveries.id, events.type AS event, deliveries.status, deliveries.attempts,
    deliveries.last_status, deliveries.created_at"""


async def one(source: Database | asyncpg.Connection, endpoint_id: int) -> asyncpg.Record:
    row = await source.fetchrow(
        f"SELECT {_ENDPOINT} FROM webhook_endpoints WHERE id = $1 AND deleted_at IS NULL",
        endpoint_id,
    )
    if row is None:
        raise no_such_endpoint()
    return row


async def page(database: Database, *, before: int, limit: int) -> list[asyncpg.Record]:
    return await database.fetch(
        f"""SELECT {_ENDPOINT} FROM webhook_endpoints
            WHERE id < $1 AND deleted_at IS NULL ORDER BY id DESC LIMIT $2""",
        before,
        limit,
    )


async def insert(
    tx: asyncpg.Connection,
    *,
    endpoint_id: int,
    url: str,
    events: Sequence[str],
    secret: bytes,
    now: datetime,
) -> asyncpg.Record:
    return await tx.fetchrow(
        f"""INSERT INTO webhook_endpoints (id, url, events, secret, created_at)
            VALUES ($1, $2, $3, $4, $5) RETURNING {_ENDPOINT}""",
        endpoint_id,
        url,
        events,
        secret,
        now,
    )


async def delete(tx: asyncpg.Connection, endpoint_id: int, now: datetime) -> asyncpg.Record:
    row = await tx.fetchrow(
        f"""UPDATE webhook_endpoints SET deleted_at = $2 WHERE id = $1 AND deleted_at IS NULL
            RETURNING {_ENDPOINT}""",
        endpoint_id,
        now,
    )
    if row is None:
        raise no_such_endpoint()
    return row


async def deliveries(
    database: Database, endpoint_id: int, *, before: int, limit: int
) -> list[asyncpg.Record]:
    return await database.fetch(
        f"""SELECT {_DELIVERY} FROM deliveries JOIN events ON events.id = event_id
            WHERE endpoint_id = $1 AND deliveries.id < $2
            ORDER BY deliveries.id DESC LIMIT $3""",
        endpoint_id,
        before,
        limit,
    )


async def insert_event_for(
    tx: asyncpg.Connection,
    endpoint_id: int,
    *,
    event_id: int,
    event: str,
    data: Mapping[str, str],
    now: datetime,
) -> asyncpg.Record:
    """An event that is told to this endpoint alone; its delivery."""
    return await tx.fetchrow(
        """WITH event AS (
               INSERT INTO events (id, type, data, occurred_at) VALUES ($1, $2, $3, $4)
               RETURNING id, type
           )
           INSERT INTO deliveries (event_id, endpoint_id, next_attempt_at, created_at)
           SELECT id, $5, $4, $4 FROM event
           RETURNING id, (SELECT type FROM event) AS event, status, attempts, last_status,
                     created_at""",
        event_id,
        event,
        data,
        now,
        endpoint_id,
    )


async def lock_delivery(
    tx: asyncpg.Connection, endpoint_id: int, delivery_id: int
) -> asyncpg.Record:
    """The delivery as it is, and that nobody else ends it or asks for it meanwhile."""
    row = await tx.fetchrow(
        f"""SELECT {_DELIVERY} FROM deliveries JOIN events ON events.id = event_id
            WHERE deliveries.id = $2 AND endpoint_id = $1 FOR UPDATE OF deliveries""",
        endpoint_id,
        delivery_id,
    )
    if row is None:
        raise no_such_delivery()
    return row


async def make_due(tx: asyncpg.Connection, delivery_id: int, now: datetime) -> asyncpg.Record:
    """Pending and due at once, with all attempts before it; the delivery as it is then."""
    return await tx.fetchrow(
        f"""UPDATE deliveries SET status = 'pending', next_attempt_at = $2, ended_at = NULL,
                   attempts_before = attempts
            FROM events WHERE deliveries.id = $1 AND events.id = event_id
            RETURNING {_DELIVERY}""",
        delivery_id,
        now,
    )
