"""Background maintenance for ledger tables: new partitions."""

import asyncio
from datetime import datetime
from typing import Final, NoReturn

import asyncpg
import structlog

from tapgate.runtime.background import run_periodically
from tapgate.runtime.exclusive_job import AlreadyRunningError, ExclusiveJob
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.partitions import create_months
from tapgate_client.clock import Clock

log = structlog.get_logger()

_INTERVAL_SECONDS: Final = 3600.0
#: Advisory lock held by the one process that changes partitions.
PARTITION_LOCK_KEY: Final = 0x7467_7061  # "tgpa"
partition_job: Final = ExclusiveJob(PARTITION_LOCK_KEY)
_MAX_ATTEMPTS: Final = 20
_PAUSE_SECONDS: Final = 0.5


class LedgerMaintenance:
    """Background worker. Every process runs it; one of them works."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def run(self) -> NoReturn:
        await run_periodically(self.maintain, every=_INTERVAL_SECONDS, name="ledger.maintenance")

    async def maintain(self) -> None:
        await ensure_partitions(self._database, self._clock())


async def ensure_partitions(database: Database, now: datetime) -> list[str]:
    """Create partitions for the next months, and return their names.

    Without them, payments continue: the last partition has no upper bound. So a lock timeout is
    only logged.
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
