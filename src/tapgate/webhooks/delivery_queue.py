"""SQL queries for the delivery queue: claims of due deliveries and results of attempts."""

from datetime import datetime, timedelta
from typing import Any

import asyncpg

from tapgate.notifications import work_queue
from tapgate.store.database import Database
from tapgate.webhooks.model import AttemptResult, ClaimedDelivery

_IS_ACTIVE = "deleted_at IS NULL AND status = 'active'"


async def fail_for_deleted_endpoints(source: Database | asyncpg.Connection, now: datetime) -> None:
    """Mark the pending deliveries of deleted endpoints as failed.

    They include deliveries added concurrently with the deletion. Each call updates at most 1,000
    rows and skips rows locked by other processes. Later calls update the rest.
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


async def list_due_endpoints(database: Database, now: datetime) -> list[int]:
    """Return the ids of active endpoints with due deliveries, longest due first."""
    rows = await database.fetch(
        f"""SELECT endpoint.id FROM webhook_endpoints endpoint, LATERAL (
                SELECT next_attempt_at FROM deliveries
                WHERE endpoint_id = endpoint.id AND status = 'pending' AND next_attempt_at <= $1
                ORDER BY next_attempt_at LIMIT 1) AS due
            WHERE {_IS_ACTIVE} ORDER BY due.next_attempt_at""",
        now,
    )
    return [row["id"] for row in rows]


async def claim(
    database: Database, endpoint_id: int, *, now: datetime, limit: int
) -> list[ClaimedDelivery]:
    claimed = await work_queue.claim(
        database,
        "deliveries",
        "id, endpoint_id, event_id, attempts, attempts_before, next_attempt_at",
        now=now,
        limit=limit,
        condition=f"""endpoint_id = $4
            AND EXISTS (SELECT FROM webhook_endpoints WHERE id = $4 AND {_IS_ACTIVE})""",
        values=(endpoint_id,),
    )
    if not claimed:
        return []
    # Read `data` as text: metadata may contain JSON that Python cannot decode, such as very long
    # numbers.
    event_rows = await database.fetch(
        """SELECT id AS event_id, type AS event, subject_id, data::text, occurred_at FROM events
           WHERE id = ANY ($1::bigint[])""",
        [row["event_id"] for row in claimed],
    )
    endpoint = await database.fetchrow(
        """SELECT url, secret, previous_secret, previous_secret_expires_at, status_changed_at
           FROM webhook_endpoints WHERE id = $1""",
        endpoint_id,
    )
    assert endpoint is not None
    events = {event["event_id"]: event for event in event_rows}
    return [ClaimedDelivery(**{**row, **events[row["event_id"]], **endpoint}) for row in claimed]


async def is_endpoint_unchanged(database: Database, delivery: ClaimedDelivery) -> bool:
    """Return whether the endpoint is active, with URL, status and secret as of the claim."""
    is_unchanged: bool = await database.fetchval(
        f"""SELECT EXISTS (SELECT FROM webhook_endpoints
                           WHERE {_SAME_ENDPOINT} AND secret = $4)""",
        *_get_endpoint_values(delivery),
        delivery.secret,
    )
    return is_unchanged


async def release(database: Database, delivery: ClaimedDelivery, now: datetime) -> None:
    """Undo a claim for which nothing was sent, so that the delivery is due again."""
    await database.execute(
        f"""UPDATE deliveries SET attempts = attempts - 1, next_attempt_at = $4
            WHERE {_STILL_CLAIMED}""",
        *_get_claim_values(delivery),
        now,
    )


async def store_event_data(database: Database, event_id: int, data: dict[str, Any]) -> str:
    """Store the event's data if it has none yet; return the stored data."""
    stored: str = await database.fetchval(
        """UPDATE events SET data = coalesce(data, $2) WHERE id = $1 RETURNING data::text""",
        event_id,
        data,
    )
    return stored


async def mark_delivered(
    database: Database, delivery: ClaimedDelivery, result: AttemptResult, now: datetime
) -> None:
    await database.execute(
        """WITH succeeded AS (
               UPDATE webhook_endpoints SET failing_since = NULL
               WHERE id = $6 AND failing_since IS NOT NULL)
           UPDATE deliveries SET status = 'delivered', next_attempt_at = NULL, ended_at = $2,
                  last_status = $3, duration_ms = $4, response = $5
           WHERE id = $1 AND status = 'pending'""",
        delivery.id,
        now,
        *_get_result_values(result),
        delivery.endpoint_id,
    )


async def record_failed_attempt(
    database: Database,
    delivery: ClaimedDelivery,
    result: AttemptResult,
    now: datetime,
    retry_at: datetime | None,
) -> None:
    """Record a failed attempt and schedule the next attempt at `retry_at`.

    If `retry_at` is None, the delivery fails. A redelivery requested during the attempt stays due.
    """
    await database.execute(
        f"""UPDATE deliveries
            SET last_status = $4, duration_ms = $5, response = $6,
                status = CASE WHEN {_SAME_LEASE} AND $7::timestamptz IS NULL
                              THEN 'failed' ELSE status END,
                next_attempt_at = CASE WHEN {_SAME_LEASE} THEN $7 ELSE next_attempt_at END,
                ended_at = CASE WHEN {_SAME_LEASE} AND $7 IS NULL THEN $8 ELSE ended_at END
            WHERE {_LATEST_ATTEMPT}""",
        *_get_claim_values(delivery),
        *_get_result_values(result),
        retry_at,
        now,
    )


async def mark_endpoint_failing(
    database: Database, delivery: ClaimedDelivery, now: datetime, *, max_gap: timedelta
) -> datetime | None:
    """Record a failure of the endpoint; return the start of its current failure streak.

    A success, or a gap between failures longer than `max_gap`, ends a streak. Returns None if the
    URL or status of the endpoint has changed since the claim, or if the endpoint is deleted.
    """
    since: datetime | None = await database.fetchval(
        f"""UPDATE webhook_endpoints
            SET last_failure_at = $4,
                failing_since = CASE WHEN failing_since IS NOT NULL AND last_failure_at >= $5
                                     THEN failing_since ELSE $4 END
            WHERE {_SAME_ENDPOINT} RETURNING failing_since""",
        *_get_endpoint_values(delivery),
        now,
        now - max_gap,
    )
    return since


async def disable_endpoint(
    tx: asyncpg.Connection,
    delivery: ClaimedDelivery,
    reason: str,
    now: datetime,
    *,
    if_failing_since: datetime | None,
) -> asyncpg.Record | None:
    """Disable the endpoint and return its row.

    Returns None if the endpoint is deleted or its URL or status has changed since the claim. If
    `if_failing_since` is set, also returns None unless the failure streak started at that time.
    """
    return await tx.fetchrow(
        f"""UPDATE webhook_endpoints
            SET status = 'disabled', status_reason = $4, status_changed_at = $5,
                failing_since = NULL
            WHERE {_SAME_ENDPOINT} AND ($6::timestamptz IS NULL OR failing_since = $6)
            RETURNING id, url, events, status, status_reason, status_changed_at""",
        *_get_endpoint_values(delivery),
        reason,
        now,
        if_failing_since,
    )


#: False once the delivery has been claimed again or has ended.
_LATEST_ATTEMPT = "id = $1 AND attempts = $2 AND status = 'pending'"
#: False once an admin has requested a redelivery.
_SAME_LEASE = "next_attempt_at = $3"
_STILL_CLAIMED = f"{_LATEST_ATTEMPT} AND {_SAME_LEASE}"

#: False once the URL or status of the endpoint has changed, or the endpoint is deleted.
_SAME_ENDPOINT = f"id = $1 AND url = $2 AND status_changed_at = $3 AND {_IS_ACTIVE}"


def _get_claim_values(delivery: ClaimedDelivery) -> tuple[int, int, datetime]:
    return delivery.id, delivery.attempts, delivery.next_attempt_at


def _get_endpoint_values(delivery: ClaimedDelivery) -> tuple[int, str, datetime]:
    return delivery.endpoint_id, delivery.url, delivery.status_changed_at


def _get_result_values(result: AttemptResult) -> tuple[int | None, int | None, str | None]:
    return result.status, result.duration_ms, result.response
