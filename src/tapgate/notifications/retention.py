"""What was sent, or given up, is kept for a while to be looked at, and then removed."""

from datetime import datetime, timedelta
from typing import Any, Final, NoReturn

from tapgate.clock import Clock
from tapgate.edge.services import Services
from tapgate.service.background import repeat
from tapgate.store.database import Database

KEPT: Final = timedelta(days=30)
BATCH: Final = 1_000
_EVERY_SECONDS: Final = 600.0
#: One process at a time: an event goes with the last of its deliveries, which two that each remove
#: another one would both not see.
_LOCK_KEY: Final = 0x7467_6B65  # "tgke"


class Retention:
    """Removes a bounded number at a time, so that nobody waits for it."""

    def __init__(self, services: Services) -> None:
        self._database: Database = services.database
        self._clock: Clock = services.clock

    async def run(self) -> NoReturn:
        await repeat(self.remove_old, every=_EVERY_SECONDS, name="notifications.retention")

    async def remove_old(self) -> None:
        before = self._clock() - KEPT
        while await self._remove_batch(before):
            pass

    async def _remove_batch(self, before: datetime) -> bool:
        """Whether there may be more."""
        async with self._database.transaction() as tx:
            if not await tx.fetchval("SELECT pg_try_advisory_xact_lock($1)", _LOCK_KEY):
                return False
            removed = (
                await _remove_deliveries(tx, before),
                await _remove_endpoints(tx, before),
                await _remove_messages(tx, before),
            )
        return max(removed) == BATCH


async def _remove_deliveries(tx: Any, before: datetime) -> int:
    """And their events, once nobody is left who was told of them."""
    rows = await tx.fetch(
        f"""DELETE FROM deliveries WHERE id = ANY (ARRAY(
                SELECT id FROM deliveries WHERE status <> 'pending' AND ended_at < $1
                ORDER BY ended_at LIMIT {BATCH} FOR UPDATE SKIP LOCKED))
            RETURNING event_id""",
        before,
    )
    await tx.execute(
        """DELETE FROM events WHERE id = ANY ($1::bigint[])
             AND NOT EXISTS (SELECT FROM deliveries WHERE event_id = events.id)""",
        [row["event_id"] for row in rows],
    )
    return len(rows)


async def _remove_endpoints(tx: Any, before: datetime) -> int:
    rows = await tx.fetch(
        f"""DELETE FROM webhook_endpoints WHERE id = ANY (ARRAY(
                SELECT id FROM webhook_endpoints endpoint WHERE deleted_at < $1
                  AND NOT EXISTS (SELECT FROM deliveries WHERE endpoint_id = endpoint.id)
                LIMIT {BATCH}))
            RETURNING id""",
        before,
    )
    return len(rows)


async def _remove_messages(tx: Any, before: datetime) -> int:
    """A message ends when its time is over, if not earlier."""
    rows = await tx.fetch(
        f"""DELETE FROM messages WHERE id = ANY (ARRAY(
                SELECT id FROM messages WHERE status <> 'pending' AND expires_at < $1
                ORDER BY expires_at LIMIT {BATCH} FOR UPDATE SKIP LOCKED))
            RETURNING id""",
        before,
    )
    return len(rows)
