"""Background maintenance of the ledger's tables: new partitions, removal of old keys and taps."""

import asyncio
from datetime import datetime, timedelta
from typing import Final, NoReturn

import asyncpg
import structlog

from tapgate.core.settings import Settings
from tapgate.ledger.rejected_taps import RETENTION_PERIOD, remove_old_taps
from tapgate.runtime.background import run_periodically
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.exclusive_job import AlreadyRunningError, ExclusiveJob
from tapgate.runtime.store.partitions import create_months
from tapgate_client import ids
from tapgate_client.clock import Clock

log = structlog.get_logger()

_INTERVAL_SECONDS: Final = 3600.0
#: Advisory lock held by the one process that changes partitions.
PARTITION_LOCK_KEY: Final = 0x7467_7061  # "tgpa"
partition_job: Final = ExclusiveJob(PARTITION_LOCK_KEY)
_MAX_ATTEMPTS: Final = 20
_PAUSE_SECONDS: Final = 0.5

#: Pages of a key table that one statement reads, about 40,000 keys.
PRUNED_PAGES: Final = 512
_KEY_TABLES: Final = ("idempotency_keys", "partner_references")


class LedgerMaintenance:
    """Background worker. Every process runs it; one of them works."""

    def __init__(self, database: Database, clock: Clock, settings: Settings) -> None:
        self._database = database
        self._clock = clock
        self._key_retention_days = settings.idempotency_key_days

    async def run(self) -> NoReturn:
        await run_periodically(self.maintain, every=_INTERVAL_SECONDS, name="ledger.maintenance")

    async def maintain(self) -> None:
        now = self._clock()
        await ensure_partitions(self._database, now)
        if self._key_retention_days:
            await remove_old_keys(self._database, now - timedelta(days=self._key_retention_days))
        while await remove_old_taps(self._database, now - RETENTION_PERIOD):
            pass


async def ensure_partitions(database: Database, now: datetime) -> list[str]:
    """Create the partitions of the next months, and return the names of new ones.

    Without them payments continue: the last partition has no upper bound. So a lock that cannot be
    had is only logged.
    """
    created: list[str] = []
    try:
        async with partition_job.acquire_connection(database) as connection:
            await connection.execute("SET statement_timeout = 0")
            for _ in range(_MAX_ATTEMPTS):
                try:
                    created += await create_months(connection, now)
                except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
                    await asyncio.sleep(_PAUSE_SECONDS)
                else:
                    return created
            log.warning("ledger.partitions_locked", created=created)
    except AlreadyRunningError:
        pass
    return created


async def remove_old_keys(database: Database, before: datetime) -> int:
    """Remove the keys of transactions before a time, and return their number.

    Reads the tables in ranges of pages, so that the keys need no second index, and each statement
    is short. A request with a removed key is a new request.
    """
    removed = 0
    for table in _KEY_TABLES:
        pages = await database.fetchval(
            "SELECT pg_relation_size($1::text::regclass) / current_setting('block_size')::integer",
            table,
        )
        for first in range(0, pages, PRUNED_PAGES):
            removed += await database.fetchval(
                f"""WITH removed AS (
                        DELETE FROM {table}
                        WHERE ctid >= '({first},0)' AND ctid < '({first + PRUNED_PAGES},0)'
                          AND transaction_id < $1
                        RETURNING 1)
                    SELECT count(*) FROM removed""",
                ids.first_id_at(before),
            )
    return removed
