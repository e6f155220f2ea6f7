"""Removal of old events, deliveries, messages, chat turns, endpoints and expired secrets."""

from datetime import datetime, timedelta
from typing import Any, Final, NoReturn

from tapgate.http.api.services import Services
from tapgate.runtime.background import run_periodically
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.clock import Clock

RETENTION_PERIOD: Final = timedelta(days=30)
BATCH_SIZE: Final = 1_000
_INTERVAL_SECONDS: Final = 600.0
#: Advisory lock held by the one process that removes rows. An event is removed with its last
#: delivery. Two concurrent database transactions that each remove one of its last two deliveries
#: would both still see the other delivery, and neither would remove the event.
_LOCK_KEY: Final = 0x7467_6B65  # "tgke"


class RetentionWorker:
    """Background worker that removes old rows in bounded batches, so that locks are brief."""

    def __init__(self, services: Services) -> None:
        self._database: Database = services.database
        self._clock: Clock = services.clock

    async def run(self) -> NoReturn:
        await run_periodically(
            self.remove_expired, every=_INTERVAL_SECONDS, name="notifications.retention"
        )

    async def remove_expired(self) -> None:
        now = self._clock()
        while await self._remove_batch(now - RETENTION_PERIOD):
            pass
        await _remove_expired_secrets(self._database, now)

    async def _remove_batch(self, before: datetime) -> bool:
        """Remove one batch of each kind; return whether more rows may be left.

        Returns False if another process holds the lock.
        """
        async with self._database.transaction() as tx:
            if not await tx.fetchval("SELECT pg_try_advisory_xact_lock($1)", _LOCK_KEY):
                return False
            removed = (
                await _remove_deliveries(tx, _ENDED_DELIVERIES_SQL, before),
                await _remove_deliveries(tx, _UNSENT_DELIVERIES_SQL, before),
                await _remove_endpoints(tx, before),
                await _remove_messages(tx, before),
                await _remove_chat_turns(tx, before),
            )
        return max(removed) == BATCH_SIZE


_ENDED_DELIVERIES_SQL: Final = """
    SELECT id FROM deliveries WHERE status <> 'pending' AND ended_at < $1
    ORDER BY ended_at LIMIT {limit} FOR UPDATE SKIP LOCKED"""

#: Deliveries that have been due for the whole retention period: the backlog of an endpoint that is
#: paused, disabled or too slow for its events.
_UNSENT_DELIVERIES_SQL: Final = """
    SELECT waiting.id FROM webhook_endpoints endpoint, LATERAL (
        SELECT id FROM deliveries
        WHERE endpoint_id = endpoint.id AND status = 'pending' AND next_attempt_at < $1
        ORDER BY next_attempt_at LIMIT {limit} FOR UPDATE SKIP LOCKED) AS waiting
    LIMIT {limit}"""


async def _remove_deliveries(tx: Any, select_sql: str, before: datetime) -> int:
    """Remove deliveries, and the events that have no deliveries left."""
    rows = await tx.fetch(
        f"""DELETE FROM deliveries WHERE id = ANY (ARRAY({select_sql.format(limit=BATCH_SIZE)}))
            RETURNING event_id""",
        before,
    )
    await tx.execute(
        """DELETE FROM events WHERE id = ANY ($1::bigint[])
             AND NOT EXISTS (SELECT FROM deliveries WHERE event_id = events.id)""",
        [row["event_id"] for row in rows],
    )
    return len(rows)


async def _remove_expired_secrets(database: Database, now: datetime) -> None:
    """Remove the previous secrets of webhook endpoints after their grace period."""
    await database.execute(
        """UPDATE webhook_endpoints
           SET previous_secret = NULL, previous_secret_expires_at = NULL
           WHERE previous_secret_expires_at < $1""",
        now,
    )


async def _remove_endpoints(tx: Any, before: datetime) -> int:
    rows = await tx.fetch(
        f"""DELETE FROM webhook_endpoints WHERE id = ANY (ARRAY(
                SELECT id FROM webhook_endpoints endpoint WHERE deleted_at < $1
                  AND NOT EXISTS (SELECT FROM deliveries WHERE endpoint_id = endpoint.id)
                LIMIT {BATCH_SIZE}))
            RETURNING id""",
        before,
    )
    return len(rows)


async def _remove_messages(tx: Any, before: datetime) -> int:
    """Remove messages that are not pending and whose `expires_at` is before this time."""
    rows = await tx.fetch(
        f"""DELETE FROM messages WHERE id = ANY (ARRAY(
                SELECT id FROM messages WHERE status <> 'pending' AND expires_at < $1
                ORDER BY expires_at LIMIT {BATCH_SIZE} FOR UPDATE SKIP LOCKED))
            RETURNING id""",
        before,
    )
    return len(rows)


async def _remove_chat_turns(tx: Any, before: datetime) -> int:
    rows = await tx.fetch(
        f"""DELETE FROM chat_turns WHERE id = ANY (ARRAY(
                SELECT id FROM chat_turns WHERE id < $1 ORDER BY id LIMIT {BATCH_SIZE}))
            RETURNING id""",
        ids.first_id_at(before),
    )
    return len(rows)
