"""SQL queries for the delivery queue: lease due deliveries and record attempt results."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import asyncpg

from tapgate.core.records import require_record
from tapgate.events.webhooks.model import AttemptResult, LeasedDelivery, LoggedAttempt
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.work_queue import ResultUpdate, WorkQueue
from tapgate_client import ids

_IS_ACTIVE = "deleted_at IS NULL AND status = 'active'"

#: `data` is read as text, because metadata may contain JSON that Python cannot decode, such as very
#: long numbers.
_LEASED_COLUMNS: Final = """job.id, job.endpoint_id, job.event_id, job.attempts,
    job.attempts_before, job.next_attempt_at, event.type AS event, event.subject_id,
    event.data::text, event.occurred_at, endpoint.url, endpoint.secret, endpoint.previous_secret,
    endpoint.previous_secret_expires_at, endpoint.status_changed_at"""
_QUEUE = WorkQueue("deliveries", _LEASED_COLUMNS, destination="endpoint_id")
#: Deliveries to disabled endpoints wait until the endpoint is enabled. Deliveries to failing ones
#: are reported per endpoint (`endpoint_metrics.py`): the receiver is at fault, not the platform.
BACKLOG_SQL: Final = _QUEUE.build_backlog_sql(
    "webhooks",
    condition=f"""endpoint_id IN (
        SELECT id FROM webhook_endpoints WHERE {_IS_ACTIVE} AND failing_since IS NULL)""",
)
#: A failing endpoint gets one request at a time after each pause.
_IS_NOT_BACKING_OFF = "(backoff_until IS NULL OR backoff_until <= $1)"
#: Failures without a success in between, after which an endpoint is paused: more than an endpoint
#: that rejects a few events has, and fewer than a burst.
BACKOFF_AFTER_FAILURES: Final = 10
_FIRST_BACKOFF_SECONDS: Final = 5
_MAX_BACKOFF_SECONDS: Final = 300
#: OFFSET keeps the planner from joining all events, which it might prefer while there are none.
_JOIN_EVENT_AND_ENDPOINT = """
    CROSS JOIN LATERAL (SELECT * FROM events WHERE id = job.event_id OFFSET 0) AS event
    JOIN webhook_endpoints endpoint ON endpoint.id = job.endpoint_id"""

_MAX_LOGGED_ATTEMPTS: Final = 30


def build_log_sql(log: str, attempt: str) -> str:
    """Return an expression that appends an attempt to a delivery's log, which is bounded."""
    return f"""CASE WHEN jsonb_array_length({log}) >= {_MAX_LOGGED_ATTEMPTS} THEN {log} - 0
                     ELSE coalesce({log}, '[]') END || {attempt}"""


_RESULT = """last_status = result.last_status, duration_ms = result.duration_ms,
             response = result.response"""
_RESULT_TYPES = {"last_status": "smallint", "duration_ms": "integer", "response": "text"}
_DELIVERED = ResultUpdate(
    _QUEUE,
    f"status = 'delivered', next_attempt_at = NULL, ended_at = result.ended_at, {_RESULT}",
    {"ended_at": "timestamptz", **_RESULT_TYPES},
    accepts_late=True,
)
#: False once an admin has requested a redelivery, which then stays due.
_SAME_LEASE = "job.next_attempt_at = result.leased_until"
#: Whether the endpoint was disabled while the request was in flight.
_IS_CANCELLED = """(result.was_sent AND EXISTS (
    SELECT FROM webhook_endpoints endpoint
    WHERE endpoint.id = job.endpoint_id AND endpoint.status = 'disabled'))"""
_FAILED = ResultUpdate(
    _QUEUE,
    f"""{_RESULT}, attempt_log = {build_log_sql("job.attempt_log", "result.attempt")},
        status = CASE WHEN NOT {_SAME_LEASE} THEN job.status
                      WHEN result.retry_at IS NULL THEN 'failed'
                      WHEN {_IS_CANCELLED} THEN 'cancelled'
                      ELSE job.status END,
        next_attempt_at = CASE WHEN NOT {_SAME_LEASE} THEN job.next_attempt_at
                               WHEN {_IS_CANCELLED} THEN NULL
                               ELSE result.retry_at END,
        ended_at = CASE WHEN {_SAME_LEASE} AND (result.retry_at IS NULL OR {_IS_CANCELLED})
                        THEN result.failed_at ELSE job.ended_at END""",
    {
        "was_sent": "boolean",
        "leased_until": "timestamptz",
        "retry_at": "timestamptz",
        "failed_at": "timestamptz",
        "attempt": "jsonb",
        **_RESULT_TYPES,
    },
)
_RELEASED = ResultUpdate(
    _QUEUE,
    f"""attempts = CASE WHEN {_SAME_LEASE} THEN job.attempts - 1 ELSE job.attempts END,
        next_attempt_at = CASE WHEN {_SAME_LEASE} THEN result.released_at
                               ELSE job.next_attempt_at END""",
    {"leased_until": "timestamptz", "released_at": "timestamptz"},
)


async def fail_for_deleted_endpoints(source: Database | asyncpg.Connection, now: datetime) -> None:
    """Mark deleted endpoints' pending deliveries as failed.

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


async def lease(
    database: Database, *, now: datetime, limit: int, capacity: int, capacities: Mapping[int, int]
) -> list[LeasedDelivery]:
    """Lease due deliveries to active endpoints, with their events and endpoints."""
    rows = await _QUEUE.lease_fairly(
        database,
        destinations=(
            f"SELECT id FROM webhook_endpoints WHERE {_IS_ACTIVE} AND {_IS_NOT_BACKING_OFF}"
        ),
        now=now,
        limit=limit,
        capacity=capacity,
        capacities=capacities,
        join=_JOIN_EVENT_AND_ENDPOINT,
    )
    return [LeasedDelivery(**row) for row in rows]


async def get(database: Database, delivery_id: int) -> LeasedDelivery:
    """Return a delivery as it would be leased, without leasing it."""
    row = await database.fetchrow(
        f"""SELECT {_LEASED_COLUMNS} FROM deliveries job {_JOIN_EVENT_AND_ENDPOINT}
            WHERE job.id = $1""",
        delivery_id,
    )
    return LeasedDelivery(**require_record(ids.DELIVERY, row))


async def is_endpoint_unchanged(database: Database, delivery: LeasedDelivery) -> bool:
    """Return whether the endpoint is active and its URL, status and secret are unchanged."""
    is_unchanged: bool = await database.fetchval(
        f"""SELECT EXISTS (SELECT FROM webhook_endpoints
                           WHERE {_SAME_ENDPOINT} AND secret = $4)""",
        *_get_endpoint_values(delivery),
        delivery.secret,
    )
    return is_unchanged


async def release(database: Database, deliveries: Sequence[LeasedDelivery], now: datetime) -> None:
    """Undo leases for which nothing was sent, so that the deliveries are due again."""
    await _RELEASED.record(
        database,
        [
            (delivery, {"leased_until": delivery.next_attempt_at, "released_at": now})
            for delivery in deliveries
        ],
    )


async def mark_delivered(
    database: Database, results: Sequence[tuple[LeasedDelivery, AttemptResult]], now: datetime
) -> None:
    """Record successful attempts, which also end their endpoints' failure streaks."""
    await _DELIVERED.record(
        database,
        [
            (delivery, {"ended_at": now, **_get_result_values(result)})
            for delivery, result in results
        ],
    )
    await database.execute(
        """UPDATE webhook_endpoints
           SET failing_since = NULL, failures = 0, backoff_step = 0, backoff_until = NULL
           WHERE id = ANY ($1::bigint[]) AND failing_since IS NOT NULL""",
        list({delivery.endpoint_id for delivery, _ in results}),
    )


async def record_failed_attempts(
    database: Database,
    results: Sequence[tuple[LeasedDelivery, AttemptResult, datetime | None]],
    now: datetime,
) -> None:
    """Record failed attempts and schedule the next ones at the given times.

    If the time is None, the delivery fails. If the endpoint was disabled while the request was in
    flight, the delivery is cancelled. A redelivery requested during the attempt stays due.
    """
    await _FAILED.record(
        database,
        [
            (
                delivery,
                {
                    "was_sent": not result.is_internal,
                    "leased_until": delivery.next_attempt_at,
                    "retry_at": retry_at,
                    "failed_at": now,
                    "attempt": LoggedAttempt(
                        number=delivery.attempts,
                        attempted_at=now,
                        http_status=result.status,
                        duration_ms=result.duration_ms,
                        error=result.error,
                    ),
                    **_get_result_values(result),
                },
            )
            for delivery, result, retry_at in results
        ],
    )


class FailureStreak(NamedTuple):
    since: datetime
    #: When the endpoint may be tried again; None: according to each delivery's schedule.
    backoff_until: datetime | None


async def mark_endpoint_failing(
    database: Database,
    delivery: LeasedDelivery,
    now: datetime,
    *,
    failures: int,
    max_gap: timedelta,
) -> FailureStreak | None:
    """Record failed attempts to reach an endpoint; return its current failure streak.

    A success, or a gap between failures longer than `max_gap`, ends a streak. From
    `BACKOFF_AFTER_FAILURES` on, the endpoint pauses for 5 seconds, 10, 20, up to 5 minutes; late
    failures of requests that were already in flight do not lengthen a pause. Returns None if the
    endpoint's URL or status has changed since the lease, or if the endpoint is deleted.
    """
    row = await database.fetchrow(
        f"""UPDATE webhook_endpoints
            SET last_failure_at = $4,
                failing_since = CASE WHEN {_CONTINUES} THEN failing_since ELSE $4 END,
                failures = {_FAILURES},
                backoff_step = CASE WHEN {_FAILURES} < {BACKOFF_AFTER_FAILURES} THEN 0
                                    WHEN backoff_until > $4 THEN backoff_step
                                    ELSE least(backoff_step + 1, 10) END,
                backoff_until = CASE WHEN {_FAILURES} < {BACKOFF_AFTER_FAILURES} THEN NULL
                                     WHEN backoff_until > $4 THEN backoff_until
                                     ELSE $4 + make_interval(secs => {_BACKOFF_SECONDS}) END
            WHERE {_SAME_ENDPOINT} RETURNING failing_since, backoff_until""",
        *_get_endpoint_values(delivery),
        now,
        now - max_gap,
        failures,
    )
    return None if row is None else FailureStreak(*row)


async def disable_endpoint(
    tx: asyncpg.Connection,
    delivery: LeasedDelivery,
    reason: str,
    now: datetime,
    *,
    if_failing_since: datetime | None,
) -> asyncpg.Record | None:
    """Disable the endpoint and return its row.

    Returns None if the endpoint is deleted or its URL or status has changed since the lease. If
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


_CONTINUES: Final = "(failing_since IS NOT NULL AND last_failure_at >= $5)"
_FAILURES: Final = f"(CASE WHEN {_CONTINUES} THEN failures ELSE 0 END + $6)"
_BACKOFF_SECONDS: Final = (
    f"least({_FIRST_BACKOFF_SECONDS} * 2 ^ backoff_step, {_MAX_BACKOFF_SECONDS})"
)
#: False once the endpoint's URL or status has changed, or the endpoint is deleted.
_SAME_ENDPOINT = f"id = $1 AND url = $2 AND status_changed_at = $3 AND {_IS_ACTIVE}"


def _get_endpoint_values(delivery: LeasedDelivery) -> tuple[int, str, datetime]:
    return delivery.endpoint_id, delivery.url, delivery.status_changed_at


def _get_result_values(result: AttemptResult) -> dict[str, int | str | None]:
    return {
        "last_status": result.status,
        "duration_ms": result.duration_ms,
        "response": result.response,
    }
