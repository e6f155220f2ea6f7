"""SQL queries for webhook endpoints, and for deliveries in the admin API."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import asyncpg

from tapgate.auth import secret_rows
from tapgate.auth.owners import WEBHOOK_ENDPOINTS, Owner, OwnerView, limit_to_owner
from tapgate.core.records import require_record
from tapgate.events.webhooks.delivery_queue import build_log_sql
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.schemas.webhooks import WebhookDeliveryFilters, WebhookEndpointFilters

_ENDPOINT_COLUMNS = f"""id, url, events, status, status_reason, status_changed_at, failing_since,
    last_failure_at, created_by, rotated_by, rotated_at, owner_type, owner_id,
    {secret_rows.select_name("webhook_endpoints.created_by")} AS created_by_name,
    {secret_rows.select_name("webhook_endpoints.rotated_by")} AS rotated_by_name"""
#: An endpoint that is disabled, or whose last attempt failed.
IS_FAILING = "(status = 'disabled' OR status = 'active' AND failing_since IS NOT NULL)"
_DELIVERY_COLUMNS = """deliveries.id, events.type AS event, deliveries.status, deliveries.attempts,
    deliveries.last_status, deliveries.duration_ms, deliveries.response, deliveries.created_at,
    deliveries.next_attempt_at, deliveries.ended_at, deliveries.attempt_log, events.subject_id,
    events.data ->> CASE WHEN events.type LIKE 'card.%' THEN 'serial' ELSE 'id' END AS subject"""


async def get(source: Database | Transaction, endpoint_id: int) -> asyncpg.Record:
    return await _fetch_endpoint(
        source,
        f"SELECT {_ENDPOINT_COLUMNS} FROM webhook_endpoints WHERE id = $1 AND deleted_at IS NULL",
        endpoint_id,
    )


async def list_page(
    database: Database, query: WebhookEndpointFilters, view: OwnerView | None
) -> list[asyncpg.Record]:
    conditions = PageConditions(query)
    limit_to_owner(conditions, view, WEBHOOK_ENDPOINTS)
    conditions.add("deleted_at IS NULL")
    if query.failing is not None:
        conditions.add(IS_FAILING if query.failing else f"NOT {IS_FAILING}")
    return await conditions.fetch(database, f"SELECT {_ENDPOINT_COLUMNS} FROM webhook_endpoints")


async def insert(
    tx: Transaction,
    *,
    endpoint_id: int,
    url: str,
    events: Sequence[str],
    secret: bytes,
    created_by: int | None,
    owner: Owner | None,
) -> asyncpg.Record:
    return await tx.fetchrow(
        f"""INSERT INTO webhook_endpoints
                (id, url, events, secret, created_at, status_changed_at, created_by, owner_type,
                 owner_id)
            VALUES ($1, $2, $3, $4, $5, $5, $6, $7, $8) RETURNING {_ENDPOINT_COLUMNS}""",
        endpoint_id,
        url,
        events,
        secret,
        tx.now(),
        created_by,
        None if owner is None else owner.type,
        None if owner is None else owner.id,
    )


async def lock(tx: Transaction, endpoint_id: int) -> asyncpg.Record:
    return await _fetch_endpoint(
        tx,
        f"""SELECT {_ENDPOINT_COLUMNS} FROM webhook_endpoints WHERE id = $1 AND deleted_at IS NULL
            FOR NO KEY UPDATE""",
        endpoint_id,
    )


async def save(
    tx: Transaction,
    endpoint_id: int,
    *,
    url: str,
    events: Sequence[str],
    status: str,
    reason: str | None,
) -> asyncpg.Record:
    """Update the endpoint. A new URL or status ends the endpoint's failure streak."""
    return await tx.fetchrow(
        f"""UPDATE webhook_endpoints
            SET url = $2, events = $3, status = $4, status_reason = $5,
                status_changed_at = CASE WHEN status = $4 THEN status_changed_at ELSE $6 END,
                failing_since = CASE WHEN url = $2 AND status = $4 THEN failing_since END,
                failures = CASE WHEN url = $2 AND status = $4 THEN failures ELSE 0 END,
                backoff_step = CASE WHEN url = $2 AND status = $4 THEN backoff_step ELSE 0 END,
                backoff_until = CASE WHEN url = $2 AND status = $4 THEN backoff_until END
            WHERE id = $1 RETURNING {_ENDPOINT_COLUMNS}""",
        endpoint_id,
        url,
        events,
        status,
        reason,
        tx.now(),
    )


async def rotate_secret(
    tx: Transaction, endpoint_id: int, secret: bytes, grace_seconds: int, *, rotated_by: int | None
) -> asyncpg.Record:
    row = await secret_rows.rotate_secret(
        tx,
        "webhook_endpoints",
        endpoint_id,
        secret,
        column="secret",
        until_column="previous_secret_expires_at",
        grace_seconds=grace_seconds,
        condition="deleted_at IS NULL",
        returning=_ENDPOINT_COLUMNS,
        rotated_by=rotated_by,
        rotated_at=tx.now(),
    )
    return require_record(ids.WEBHOOK_ENDPOINT, row)


async def delete(tx: Transaction, endpoint_id: int) -> asyncpg.Record:
    return await _fetch_endpoint(
        tx,
        f"""UPDATE webhook_endpoints SET deleted_at = $2 WHERE id = $1 AND deleted_at IS NULL
            RETURNING {_ENDPOINT_COLUMNS}""",
        endpoint_id,
        tx.now(),
    )


async def list_deliveries(
    database: Database, endpoint_id: int, query: WebhookDeliveryFilters
) -> list[asyncpg.Record]:
    conditions = PageConditions(query, "deliveries.id")
    conditions.where("endpoint_id = {}", endpoint_id)
    conditions.where_word("deliveries.status", query.status)
    return await conditions.fetch(
        database, f"SELECT {_DELIVERY_COLUMNS} FROM deliveries JOIN events ON events.id = event_id"
    )


async def get_delivery(database: Database, endpoint_id: int, delivery_id: int) -> asyncpg.Record:
    row = await database.fetchrow(
        f"""SELECT {_DELIVERY_COLUMNS} FROM deliveries JOIN events ON events.id = event_id
            WHERE deliveries.id = $2 AND endpoint_id = $1""",
        endpoint_id,
        delivery_id,
    )
    return require_record(ids.DELIVERY, row)


async def insert_event(
    tx: Transaction, endpoint_id: int, *, event: str, data: Mapping[str, str]
) -> asyncpg.Record:
    """Insert an event with a delivery to this endpoint only; return the delivery."""
    return await tx.fetchrow(
        """WITH event AS (
               INSERT INTO events (id, type, data, occurred_at) VALUES ($1, $2, $3, $4)
               RETURNING id, type
           )
           INSERT INTO deliveries (event_id, endpoint_id, next_attempt_at, created_at)
           SELECT id, $5, $4, $4 FROM event
           RETURNING id, (SELECT type FROM event) AS event, status, attempts, last_status,
                     duration_ms, response, created_at, next_attempt_at, ended_at, attempt_log""",
        tx.new_id(),
        event,
        data,
        tx.now(),
        endpoint_id,
    )


async def lock_delivery(tx: Transaction, endpoint_id: int, delivery_id: int) -> asyncpg.Record:
    """Return the delivery, locked against completion and concurrent redeliveries."""
    row = await tx.fetchrow(
        f"""SELECT {_DELIVERY_COLUMNS} FROM deliveries JOIN events ON events.id = event_id
            WHERE deliveries.id = $2 AND endpoint_id = $1 FOR UPDATE OF deliveries""",
        endpoint_id,
        delivery_id,
    )
    return require_record(ids.DELIVERY, row)


_SUCCESS: Final = """jsonb_build_object('number', attempts, 'attempted_at', ended_at,
    'http_status', last_status, 'duration_ms', duration_ms, 'error', NULL)"""
#: A successful attempt is added to the log, which so far was only stored in the delivery itself.
_REQUEUE: Final = f"""
    UPDATE deliveries SET status = 'pending', next_attempt_at = $2, ended_at = NULL,
           attempts_before = attempts,
           attempt_log = CASE WHEN status = 'delivered'
                              THEN {build_log_sql("attempt_log", _SUCCESS)}
                              ELSE attempt_log END"""


async def requeue(tx: Transaction, delivery_id: int) -> asyncpg.Record:
    """Make the delivery pending and due, and restart its retry schedule."""
    return await tx.fetchrow(
        f"""{_REQUEUE}
            FROM events WHERE deliveries.id = $1 AND events.id = event_id
            RETURNING {_DELIVERY_COLUMNS}""",
        delivery_id,
        tx.now(),
    )


class RedeliveryProgress(NamedTuple):
    """How far a period was redelivered. A period that is complete does not change."""

    last_delivery_id: int
    redelivered: int
    is_complete: bool


class Redelivery(NamedTuple):
    endpoint_id: int
    start: datetime
    end: datetime
    status: str


async def lock_redelivery(tx: Transaction, redelivery: Redelivery) -> RedeliveryProgress:
    """Return the progress, locked against the same request in another process."""
    row = await tx.fetchrow(
        """INSERT INTO webhook_redeliveries AS known (endpoint_id, from_time, to_time, status,
               last_delivery_id, redelivered, is_complete, created_at)
           VALUES ($1, $2, $3, $4, 0, 0, false, $5)
           ON CONFLICT (endpoint_id, from_time, to_time, status)
           DO UPDATE SET created_at = known.created_at
           RETURNING last_delivery_id, redelivered, is_complete""",
        *redelivery,
        tx.now(),
    )
    return RedeliveryProgress(*row)


async def requeue_period(
    tx: Transaction, redelivery: Redelivery, *, after: int, limit: int
) -> list[int]:
    """Requeue the next deliveries in the period, and return their IDs, the largest last."""
    rows = await tx.fetch(
        f"""{_REQUEUE}
            WHERE id = ANY (ARRAY(
                SELECT id FROM deliveries
                WHERE endpoint_id = $1 AND created_at >= $3 AND created_at < $4 AND status = $5
                  AND id > $6
                ORDER BY id LIMIT $7 FOR UPDATE))
            RETURNING id""",
        redelivery.endpoint_id,
        tx.now(),
        redelivery.start,
        redelivery.end,
        redelivery.status,
        after,
        limit,
    )
    return sorted(row["id"] for row in rows)


async def save_redelivery(
    tx: Transaction, redelivery: Redelivery, progress: RedeliveryProgress
) -> None:
    await tx.execute(
        """UPDATE webhook_redeliveries
           SET last_delivery_id = $5, redelivered = $6, is_complete = $7
           WHERE (endpoint_id, from_time, to_time, status) = ($1, $2, $3, $4)""",
        *redelivery,
        *progress,
    )


async def _fetch_endpoint(
    source: Database | Transaction, sql: str, *arguments: object
) -> asyncpg.Record:
    return require_record(ids.WEBHOOK_ENDPOINT, await source.fetchrow(sql, *arguments))
