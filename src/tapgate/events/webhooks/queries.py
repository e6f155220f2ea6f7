"""SQL queries for webhook endpoints, and for deliveries in the admin API."""

from collections.abc import Mapping, Sequence

import asyncpg

from tapgate.auth import secret_rows
from tapgate.core.records import require_record
from tapgate.events.webhooks.delivery_queue import build_log_sql
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.schemas.webhooks import WebhookDeliveryFilters, WebhookEndpointFilters

_ENDPOINT_COLUMNS = f"""id, url, events, status, status_reason, status_changed_at, failing_since,
    last_failure_at, created_by, rotated_by, rotated_at,
    {secret_rows.select_name("webhook_endpoints.created_by")} AS created_by_name,
    {secret_rows.select_name("webhook_endpoints.rotated_by")} AS rotated_by_name"""
#: An endpoint that is disabled, or whose last attempt failed.
IS_FAILING = "(status = 'disabled' OR status = 'active' AND failing_since IS NOT NULL)"
_DELIVERY_COLUMNS = """deliveries.id, events.type AS event, deliveries.status, deliveries.attempts,
    deliveries.last_status, deliveries.duration_ms, deliveries.response, deliveries.created_at,
    deliveries.next_attempt_at, deliveries.ended_at, deliveries.attempt_log,
    events.data ->> CASE WHEN events.type LIKE 'card.%' THEN 'serial' ELSE 'id' END AS subject"""


async def get(source: Database | Transaction, endpoint_id: int) -> asyncpg.Record:
    return await _fetch_endpoint(
        source,
        f"SELECT {_ENDPOINT_COLUMNS} FROM webhook_endpoints WHERE id = $1 AND deleted_at IS NULL",
        endpoint_id,
    )


async def list_page(database: Database, query: WebhookEndpointFilters) -> list[asyncpg.Record]:
    conditions = PageConditions(query)
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
) -> asyncpg.Record:
    return await tx.fetchrow(
        f"""INSERT INTO webhook_endpoints
                (id, url, events, secret, created_at, status_changed_at, created_by)
            VALUES ($1, $2, $3, $4, $5, $5, $6) RETURNING {_ENDPOINT_COLUMNS}""",
        endpoint_id,
        url,
        events,
        secret,
        tx.now(),
        created_by,
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
                failing_since = CASE WHEN url = $2 AND status = $4 THEN failing_since END
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


async def requeue(tx: Transaction, delivery_id: int) -> asyncpg.Record:
    """Make the delivery pending and due, and restart its retry schedule.

    Adds a successful attempt to the log, which so far was only stored in the delivery itself.
    """
    success = """jsonb_build_object('number', attempts, 'attempted_at', ended_at,
        'http_status', last_status, 'duration_ms', duration_ms, 'error', NULL)"""
    return await tx.fetchrow(
        f"""UPDATE deliveries SET status = 'pending', next_attempt_at = $2, ended_at = NULL,
                   attempts_before = attempts,
                   attempt_log = CASE WHEN status = 'delivered'
                                      THEN {build_log_sql("attempt_log", success)}
                                      ELSE attempt_log END
            FROM events WHERE deliveries.id = $1 AND events.id = event_id
            RETURNING {_DELIVERY_COLUMNS}""",
        delivery_id,
        tx.now(),
    )


async def _fetch_endpoint(
    source: Database | Transaction, sql: str, *arguments: object
) -> asyncpg.Record:
    return require_record(ids.WEBHOOK_ENDPOINT, await source.fetchrow(sql, *arguments))
