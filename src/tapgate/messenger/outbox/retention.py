"""What went out and what came in is kept for a while to be looked at, and then removed."""

from datetime import datetime, timedelta
from typing import Final, NoReturn

from tapgate.clock import Clock
from tapgate.service.background import repeat
from tapgate.store.database import Database

KEPT_OUTBOX: Final = timedelta(days=7)
#: The provider delivers again for days; a message is known as a twin for longer than that.
KEPT_RECEIVED: Final = timedelta(days=30)
BATCH: Final = 1_000
_EVERY_SECONDS: Final = 600.0


class Retention:
    """Removes a bounded number at a time, so that nobody waits for it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def run(self) -> NoReturn:
        await repeat(self.remove_old, every=_EVERY_SECONDS, name="outbox.retention")

    async def remove_old(self) -> None:
        now = self._clock()
        while await _remove_outbox(self._database, now - KEPT_OUTBOX) == BATCH:
            pass
        while await _remove_received(self._database, now - KEPT_RECEIVED) == BATCH:
            pass


async def _remove_outbox(database: Database, before: datetime) -> int:
    """Also what waits: a sender gives up much earlier, so nobody was there to send it."""
    rows = await database.fetch(
        f"""DELETE FROM messenger.outbox WHERE id = ANY (ARRAY(
                SELECT id FROM messenger.outbox WHERE created_at < $1
                ORDER BY created_at LIMIT {BATCH} FOR UPDATE SKIP LOCKED))
            RETURNING id""",
        before,
    )
    return len(rows)


async def _remove_received(database: Database, before: datetime) -> int:
    rows = await database.fetch(
        f"""DELETE FROM messenger.received WHERE id = ANY (ARRAY(
                SELECT id FROM messenger.received
                WHERE received_at < $1 AND status <> 'waiting'
                ORDER BY received_at LIMIT {BATCH} FOR UPDATE SKIP LOCKED))
            RETURNING id""",
        before,
    )
    return len(rows)
