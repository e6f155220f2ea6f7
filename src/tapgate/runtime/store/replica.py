"""Standby from which reports read, so that they do not load the primary.

A report reads from the standby once it has replayed everything that the primary had flushed when
the report began. A report therefore contains every change that was committed before it was
requested, as on the primary. If the standby does not catch up in time, the primary is read.
"""

import asyncio
from time import monotonic
from typing import Final, Self

import asyncpg
import structlog

from tapgate.core.settings import Settings
from tapgate.runtime.store.connection_budget import REPORT_POOL_CONNECTIONS
from tapgate.runtime.store.database import Database
from tapgate_client.errors import ApiError

_log = structlog.get_logger()

_POLL_SECONDS: Final = 0.02
#: How long reports use the primary after the standby failed or did not catch up.
_RETRY_SECONDS: Final = 5.0


class Replica:
    def __init__(self, database: Database, max_lag_seconds: float) -> None:
        self.database = database
        self._max_lag_seconds = max_lag_seconds
        self.retry_at = 0.0

    @classmethod
    async def connect(cls, settings: Settings) -> Self | None:
        """Create a pool for the standby, or return None if there is none."""
        if settings.database_replica_url is None:
            return None
        database = await Database.connect(
            settings.database_replica_url, size=REPORT_POOL_CONNECTIONS
        )
        return cls(database, settings.replica_max_lag)

    async def catches_up(self, primary: Database) -> bool:
        """Wait until the standby has the primary's changes. Return False if it takes too long."""
        if monotonic() < self.retry_at:
            return False
        position = await primary.fetchval("SELECT pg_current_wal_flush_lsn()::text")
        reason = None
        try:
            async with asyncio.timeout(self._max_lag_seconds):
                while not await self._has_replayed(position):  # noqa: ASYNC110 - no event exists
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            reason = "lag"
        except (ApiError, asyncpg.PostgresError) as error:
            reason = type(error).__name__
        if reason is not None:
            self.retry_at = monotonic() + _RETRY_SECONDS
            _log.warning("replica.not_used", reason=reason)
        return reason is None

    async def _has_replayed(self, position: str) -> bool:
        """Return whether the standby has replayed the log up to a position.

        A server that was promoted replays nothing, and may be on another timeline.
        """
        replayed: bool | None = await self.database.fetchval(
            "SELECT pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= $1::text::pg_lsn", position
        )
        return replayed is True
