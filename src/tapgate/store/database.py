"""Connections to PostgreSQL, and one answer to every way of losing it: 503."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Self, TypeVar

import asyncpg
import msgspec

from tapgate.errors import ApiError, unavailable
from tapgate.store.connect import open_connection
from tapgate.store.pool import Pool
from tapgate.store.url import parse_url

T = TypeVar("T")

#: After this long a statement, or the wait for a connection, is given up.
DATABASE_TIMEOUT_SECONDS = 4.0

_SESSION_SETTINGS = {
    "application_name": "tapgate",
    "timezone": "UTC",
    "jit": "off",
    # A stopped process must not keep everybody else from the rows it has locked.
    "idle_in_transaction_session_timeout": "30s",
}

#: Every way in which opening, using or closing a connection can fail.
DATABASE_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
)

_CONNECTION_ERRORS = (
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
    """Never needs to be told that PostgreSQL went away or came back."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @classmethod
    async def connect(
        cls, url: str, *, size: int = 10, session: Mapping[str, str] | None = None
    ) -> Self:
        """Connections are opened on demand, so this works while PostgreSQL is unreachable."""
        parse_url(url)

        async def opened() -> asyncpg.Connection:
            connection = await open_connection(
                url,
                timeout=DATABASE_TIMEOUT_SECONDS,
                command_timeout=DATABASE_TIMEOUT_SECONDS,
                settings={**_SESSION_SETTINGS, **(session or {})},
            )
            try:
                await register_jsonb_codec(connection)
            except BaseException:
                connection.terminate()
                raise
            return connection

        return cls(Pool(opened, size))

    async def close(self) -> None:
        # A connection still in use after that time is one that PostgreSQL does not answer on.
        with contextlib.suppress(TimeoutError, *DATABASE_ERRORS):
            async with asyncio.timeout(DATABASE_TIMEOUT_SECONDS):
                await self._pool.close()
        self._pool.terminate()

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection]:
        connection = await self._acquire()
        try:
            yield connection
        except BaseException as error:
            _discard_if_broken(connection, error)
            raise
        finally:
            self._pool.release(connection)

    @contextlib.asynccontextmanager
    async def dedicated_connection(self) -> AsyncIterator[asyncpg.Connection]:
        """A connection for what takes long: those of the requests stay free."""
        try:
            connection = await self._pool.open_dedicated()
        except DATABASE_ERRORS as error:
            raise _build_unavailable_error() from error
        try:
            yield connection
        except BaseException as error:
            _discard_if_broken(connection, error)
            raise
        finally:
            connection.terminate()

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[asyncpg.Connection]:
        """A database transaction. Lost while committing, it may have happened or not."""
        async with self.connection() as tx:
            transaction = tx.transaction()
            await transaction.start()
            try:
                yield tx
            except Exception as error:
                if not _is_connection_loss(error, tx):
                    await transaction.rollback()
                raise
            await transaction.commit()

    async def fetch(self, sql: str, *arguments: object) -> list[asyncpg.Record]:
        return await self._execute(lambda connection: connection.fetch(sql, *arguments))

    async def fetchrow(self, sql: str, *arguments: object) -> asyncpg.Record | None:
        return await self._execute(lambda connection: connection.fetchrow(sql, *arguments))

    async def fetchval(self, sql: str, *arguments: object) -> Any:
        return await self._execute(lambda connection: connection.fetchval(sql, *arguments))

    async def execute(self, sql: str, *arguments: object) -> str:
        return await self._execute(lambda connection: connection.execute(sql, *arguments))

    async def _execute(self, statement: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        """One statement on a connection of its own, which most requests need only one for."""
        connection = await self._acquire()
        try:
            return await statement(connection)
        except BaseException as error:
            _discard_if_broken(connection, error)
            raise
        finally:
            self._pool.release(connection)

    async def _acquire(self) -> asyncpg.Connection:
        try:
            return await self._pool.acquire(DATABASE_TIMEOUT_SECONDS)
        except DATABASE_ERRORS as error:
            raise _build_unavailable_error() from error


def _discard_if_broken(connection: asyncpg.Connection, error: BaseException) -> None:
    """A connection on which something went wrong may be of no use any more."""
    if _is_connection_loss(error, connection):
        _terminate(connection)
        raise _build_unavailable_error() from error
    if not isinstance(error, Exception):
        _terminate(connection)  # cancelled: a statement may still be running on it


async def register_jsonb_codec(connection: asyncpg.Connection) -> None:
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        encoder=lambda value: _JSONB_VERSION + msgspec.json.encode(value),
        decoder=lambda data: msgspec.json.decode(data[len(_JSONB_VERSION) :]),
        format="binary",
    )


def _is_connection_loss(error: BaseException, connection: Any) -> bool:
    if isinstance(error, asyncpg.InterfaceError):
        # Also how asyncpg reports its wrong use, which must not look like an outage.
        return bool(connection.is_closed())
    return isinstance(error, _CONNECTION_ERRORS)


def _terminate(connection: Any) -> None:
    """No farewell, no wait: whoever does not answer is not asked again."""
    if not connection.is_closed():
        connection.terminate()


def _build_unavailable_error() -> ApiError:
    return unavailable("The database cannot be reached")
