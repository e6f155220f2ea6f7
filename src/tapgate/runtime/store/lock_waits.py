"""Sessions that block another session, for messages to the operator."""

import asyncio
import contextlib
from datetime import timedelta
from types import TracebackType
from typing import NamedTuple, Self

import asyncpg

from tapgate.runtime.store.connect import open_connection
from tapgate.runtime.store.connection_settings import LISTENER_LIMITS
from tapgate.runtime.store.failures import DATABASE_ERRORS

_POLL_SECONDS = 0.05
_CONNECT_TIMEOUT_SECONDS = 4.0

#: The transaction age is NULL for a session that the role must not see.
_SELECT_BLOCKERS = """
    SELECT pid, application_name, now() - xact_start, backend_type = 'autovacuum worker'
    FROM pg_stat_activity WHERE pid = ANY (pg_blocking_pids($1)) ORDER BY xact_start"""


class Blocker(NamedTuple):
    pid: int
    application_name: str
    transaction_age: timedelta | None
    is_autovacuum: bool

    def __str__(self) -> str:
        name = "autovacuum" if self.is_autovacuum else self.application_name
        details = [name] if name else []
        if self.transaction_age is not None:
            seconds = max(0, round(self.transaction_age.total_seconds()))
            details.append(f"transaction open for {timedelta(seconds=seconds)}")
        return f"session {self.pid}" + (f" ({', '.join(details)})" if details else "")


class BlockerWatch:
    """Watches the sessions that block the session `pid`, over a separate connection.

    PostgreSQL reports which sessions block another one only while it waits.
    """

    def __init__(self, url: str, pid: int) -> None:
        self._url = url
        self._pid = pid
        self._blockers: list[Blocker] = []
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        with contextlib.suppress(*DATABASE_ERRORS):  # blocker names are optional
            connection = await open_connection(
                self._url,
                timeout=_CONNECT_TIMEOUT_SECONDS,
                command_timeout=_CONNECT_TIMEOUT_SECONDS,
                settings=LISTENER_LIMITS.to_settings(),
            )
            self._task = asyncio.create_task(self._watch(connection))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def take_blockers(self) -> list[Blocker]:
        """Return the blockers seen last, and forget them."""
        blockers, self._blockers = self._blockers, []
        return blockers

    async def _watch(self, connection: asyncpg.Connection) -> None:
        try:
            while True:
                if rows := await connection.fetch(_SELECT_BLOCKERS, self._pid):
                    self._blockers = [Blocker(*row) for row in rows]
                await asyncio.sleep(_POLL_SECONDS)
        finally:
            connection.terminate()
