"""The SQL of sending: what is due, claimed by one process at a time, and what came of it."""

from datetime import datetime
from typing import Any

import asyncpg

from tapgate.notifications import claims
from tapgate.notifications.webhooks.model import Due
from tapgate.store.database import Database


async def end_for_deleted_endpoints(source: Database | asyncpg.Connection, now: datetime) -> None:
    """What waits for an endpoint that is gone has failed; also what came while it went.

    Some at a time, and not those that somebody else is about to end: the next round finds them.
    """
    await source.execute(
        """UPDATE deliveries SET status = 'failed', next_attempt_at = NULL, ended_at = $1
           WHERE id = ANY (ARRAY(
               SELECT waiting.id FROM webhook_endpoints endpoint, LATERAL (
                   SELECT id FROM deliveries
                   WHERE endpoint_id = endpoint.id AND status = 'pending'
                   ORDER BY next_attempt_at LIMIT 1000 FOR UPDATE SKIP LOCKED) AS waiting
               WHERE deleted_at IS NOT NULL LIMIT 1000))""",
        now,
    )


async def due_endpoints(database: Database, now: datetime) -> list[int]:
    """The endpoints that something is due for, longest due first."""
    rows = await database.fetch(
        """SELECT endpoint.id FROM webhook_endpoints endpoint, LATERAL (
               SELECT next_attempt_at FROM deliveries
               WHERE endpoint_id = endpoint.id AND status = 'pending' AND next_attempt_at <= $1
               ORDER BY next_attempt_at LIMIT 1) AS due
           WHERE deleted_at IS NULL ORDER BY due.next_attempt_at""",
        now,
    )
    return [row["id"] for row in rows]


async def claim(database: Database, endpoint_id: int, *, now: datetime, limit: int) -> list[Due]:
    claimed = await claims.claim(
        database,
        "deliveries",
        "id, endpoint_id, event_id, attempts, attempts_before, next_attempt_at",
        now=now,
        limit=limit,
        among="endpoint_id = $4",
        values=(endpoint_id,),
    )
    if not claimed:
        return []
    # As text: what a client once sent as metadata need not be what this program could decode.
    told = await database.fetch(
        """SELECT id AS event_id, type AS event, subject_id, data::text, occurred_at FROM events
           WHERE id = ANY ($1::bigint[])""",
        [row["event_id"] for row in claimed],
    )
    to = await database.fetchrow(
        "SELECT url, secret FROM webhook_endpoints WHERE id = $1", endpoint_id
    )
    assert to is not None
    events = {event["event_id"]: event for event in told}
    return [Due(**{**row, **events[row["event_id"]], **to}) for row in claimed]


async def keep_data(database: Database, event_id: int, data: dict[str, Any]) -> str:
    """The record as it is told, now and always: whoever looked it up first has said what it is."""
    kept: str = await database.fetchval(
        """UPDATE events SET data = coalesce(data, $2) WHERE id = $1 RETURNING data::text""",
        event_id,
        data,
    )
    return kept


async def delivered(database: Database, due: Due, status: int, now: datetime) -> None:
    await database.execute(
        """UPDATE deliveries SET status = 'delivered', next_attempt_at = NULL, ended_at = $3,
                  last_status = $2
           WHERE id = $1 AND status = 'pending'""",
        due.id,
        status,
        now,
    )


async def put_off(database: Database, due: Due, status: int | None, until: datetime) -> None:
    await database.execute(
        f"UPDATE deliveries SET next_attempt_at = $5, last_status = $4 WHERE {_STILL_CLAIMED}",
        *_claim_of(due),
        status,
        until,
    )


async def given_up(database: Database, due: Due, status: int | None, now: datetime) -> None:
    await database.execute(
        f"""UPDATE deliveries SET status = 'failed', next_attempt_at = NULL, ended_at = $5,
                   last_status = $4
            WHERE {_STILL_CLAIMED}""",
        *_claim_of(due),
        status,
        now,
    )


#: Whoever took the claim over, or asked for the delivery again, has changed one of these.
_STILL_CLAIMED = "id = $1 AND attempts = $2 AND next_attempt_at = $3 AND status = 'pending'"


def _claim_of(due: Due) -> tuple[int, int, datetime]:
    return due.id, due.attempts, due.next_attempt_at
