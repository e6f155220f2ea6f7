"""Connections to PostgreSQL, and one answer to every way of losing it: 503."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, Self

import asyncpg
import msgspec

from tapgate.errors import ApiError, unavailable

#: After this long a statement, or the wait for a connection, is given up.
PATIENCE_SECONDS = 4.0

_SESSION_SETTINGS = {
    "application_name": "tapgate",
    "timezone": "UTC",
    "jit": "off",
    # A stopped process must not keep everybody else from the rows it has locked.
    "idle_in_transaction_session_timeout": "30s",
}

#: Every way in which opening, using or closing a connection can fail.
FAILURES = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
)

_LOSSES = (
    asyncpg.PostgresConnectionError,
    asyncpg.InternalClientError,  # used between the server's farewell and the end of the stream
    asyncpg.OperatorInterventionError,  # shutting down, starting up, cancelled by the operator
    asyncpg.InsufficientResourcesError,  # connections, memory or disk used up
    asyncpg.IdleInTransactionSessionTimeoutError,
    ConnectionError,
    TimeoutError,
)

_JSONB_VERSION = b"\x01"


class Database:
    """A pool that never needs to be told that PostgreSQL went away or came back."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    @classmethod
    async def connect(
        cls, url: str, *, size: int = 10, session: Mapping[str, str] | None = None
    ) -> Self:
        """Connections are opened when they are needed, so this works while PostgreSQL is away."""
        pool = await asyncpg.create_pool(
            url,
            min_size=0,
            max_size=size,
            timeout=PATIENCE_SECONDS,
            command_timeout=PATIENCE_SECONDS,
            server_settings={**_SESSION_SETTINGS, **(session or {})},
            init=use_msgspec_for_jsonb,
            reset=_keep_session,
        )
        return cls(pool)

    async def close(self) -> None:
        # A connection still in use after that time is one that PostgreSQL does not answer on.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._pool.close()
        self._pool.terminate()

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection]:
        connection = await self._take()
        try:
            yield connection
        except BaseException as error:
            if _is_loss(error, connection):
                _abandon(connection)
                raise _lost() from error
            if not isinstance(error, Exception):
                # Cancelled: a statement may still be running on it.
                _abandon(connection)
            raise
        finally:
            await self._give_back(connection)

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[asyncpg.Connection]:
        """A database transaction. Lost while committing, it may have happened or not."""
        async with self.connection() as tx:
            transaction = tx.transaction()
            await transaction.start()
            try:
                yield tx
            except Exception as error:
                if not _is_loss(error, tx):
                    await transaction.rollback()
                raise
            await transaction.commit()

    async def fetch(self, sql: str, *arguments: object) -> list[asyncpg.Record]:
        async with self.connection() as connection:
            return await connection.fetch(sql, *arguments)  # type: ignore[no-any-return]

    async def fetchrow(self, sql: str, *arguments: object) -> asyncpg.Record | None:
        async with self.connection() as connection:
            return await connection.fetchrow(sql, *arguments)

    async def fetchval(self, sql: str, *arguments: object) -> Any:
        async with self.connection() as connection:
            return await connection.fetchval(sql, *arguments)

    async def execute(self, sql: str, *arguments: object) -> str:
        async with self.connection() as connection:
            return await connection.execute(sql, *arguments)  # type: ignore[no-any-return]

    async def _take(self) -> Any:
        try:
            return await self._pool.acquire(timeout=PATIENCE_SECONDS)
        except FAILURES as error:
            raise _lost() from error

    async def _give_back(self, connection: Any) -> None:
        # What was done with it is done: a loss now is the next user's business.
        with contextlib.suppress(*FAILURES):
            await self._pool.release(connection)


async def use_msgspec_for_jsonb(connection: asyncpg.Connection) -> None:
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        encoder=lambda value: _JSONB_VERSION + msgspec.json.encode(value),
        decoder=lambda data: msgspec.json.decode(data[len(_JSONB_VERSION) :]),
        format="binary",
    )


async def _keep_session(_: asyncpg.Connection) -> None:
    """No round trip to clean up: a session's settings and locks are never changed."""


def _is_loss(error: BaseException, connection: Any) -> bool:
    if isinstance(error, asyncpg.InterfaceError):
        # Also how asyncpg reports its wrong use, which must not look like an outage.
        return _is_closed(connection)
    return isinstance(error, _LOSSES)


def _is_closed(connection: Any) -> bool:
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:
        return True  # the pool has already taken it back


def _abandon(connection: Any) -> None:
    """No farewell, no wait: whoever does not answer is not asked again."""
    if not _is_closed(connection):
        connection.terminate()


def _lost() -> ApiError:
    return unavailable("The database cannot be reached")
