"""Long jobs that each run at most once at a time per installation, on a dedicated connection."""

import contextlib
from collections.abc import AsyncIterator
from weakref import WeakSet

import asyncpg

from tapgate.runtime.store import database as database_module
from tapgate.runtime.store.connection_settings import LONG_JOB_LIMITS, format_timeout
from tapgate.runtime.store.database import Database


class AlreadyRunningError(Exception):
    """The job is already running, in this process or in another."""


class ExclusiveJob:
    """Advisory lock that is held while a job runs.

    A process opens at most one connection per job and database: while the job runs in this process,
    further callers are rejected before a connection is opened.
    """

    def __init__(self, lock_key: int) -> None:
        self._lock_key = lock_key
        self._running: WeakSet[Database] = WeakSet()

    @contextlib.asynccontextmanager
    async def acquire_connection(
        self, database: Database, *, wait_seconds: float = 0
    ) -> AsyncIterator[asyncpg.Connection]:
        """Hold the lock for the context and yield the job's connection.

        Raise AlreadyRunningError if the job runs in this process, or still runs in another process
        after `wait_seconds`.
        """
        if database in self._running:
            raise AlreadyRunningError
        self._running.add(database)
        try:
            async with database.dedicated_connection() as connection:
                await self._acquire_lock(connection, wait_seconds)
                try:
                    yield connection
                finally:
                    await connection.execute(
                        "SELECT pg_advisory_unlock($1)",
                        self._lock_key,
                        timeout=database_module.DATABASE_TIMEOUT_SECONDS,
                    )
        finally:
            self._running.discard(database)

    async def _acquire_lock(self, connection: asyncpg.Connection, wait_seconds: float) -> None:
        if not wait_seconds:
            if not await connection.fetchval("SELECT pg_try_advisory_lock($1)", self._lock_key):
                raise AlreadyRunningError
            return
        await connection.execute(f"SET lock_timeout = '{format_timeout(wait_seconds)}'")
        try:
            await connection.execute("SELECT pg_advisory_lock($1)", self._lock_key)
        except asyncpg.LockNotAvailableError:
            raise AlreadyRunningError from None
        limit = format_timeout(LONG_JOB_LIMITS.lock)
        await connection.execute(f"SET lock_timeout = '{limit}'")
