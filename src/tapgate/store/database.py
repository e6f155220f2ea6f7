"""PostgreSQL access that reports every kind of connection failure as 503."""

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

#: Timeout of a statement, of connecting, and of waiting for a pooled connection.
DATABASE_TIMEOUT_SECONDS = 4.0

_SESSION_SETTINGS = {
    "application_name": "tapgate",
    "timezone": "UTC",
    "jit": "off",
    # A suspended process must not block others by holding row locks.
    "idle_in_transaction_session_timeout": "30s",
}

#: Database and network errors that opening, using, or closing a connection can raise.
DATABASE_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
)

_CONNECTION_ERRORS = (
    asyncpg.PostgresConnectionError,
    asyncpg.InternalClientError,  # connection used after the server began to close it
    asyncpg.OperatorInterventionError,  # shutting down, starting up, canceled by the operator
    asyncpg.InsufficientResourcesError,  # connections, memory, or disk exhausted
    asyncpg.IdleInTransactionSessionTimeoutError,
    ConnectionError,
    TimeoutError,
)

_JSONB_VERSION = b"\x01"


class RaiseAfterCommit(Exception):  # noqa: N818 - an instruction rather than an error
    """Commits the database transaction in which it is raised, and then raises `error`.

    For errors whose cause must be stored, such as a wrong PIN.
    """

    def __init__(self, error: ApiError) -> None:
        super().__init__(error)
        self.error = error


class Database:
    """Pooled access to PostgreSQL that recovers automatically after an outage."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @classmethod
    async def connect(
        cls, url: str, *, size: int = 10, session: Mapping[str, str] | None = None
    ) -> Self:
        """Create a pool. Connections open on demand, so PostgreSQL need not be reachable yet."""
        parse_url(url)

        async def open_session() -> asyncpg.Connection:
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

        return cls(Pool(open_session, size))

    async def close(self) -> None:
        # A connection that is still in use after the timeout is unresponsive.
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
        """Open a connection for a long-running job, so the pool remains available to requests."""
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
        """Open a database transaction that commits on exit and rolls back on an exception.

        `RaiseAfterCommit` commits it and raises the enclosed error.
        If the connection is lost during the commit, raise 503: the outcome is unknown.
        """
        async with self.connection() as tx:
            transaction = tx.transaction()
            await transaction.start()
            try:
                yield tx
            except RaiseAfterCommit as request:
                await transaction.commit()
                raise request.error from None
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
        """Run one statement on a pooled connection."""
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
    """Terminate a connection that an error has made unusable; raise 503 if it was lost."""
    if _is_connection_loss(error, connection):
        _terminate(connection)
        raise _build_unavailable_error() from error
    if not isinstance(error, Exception):
        _terminate(connection)  # canceled: a statement may still be running


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
        # asyncpg also reports incorrect use this way, which must not look like an outage.
        return bool(connection.is_closed())
    return isinstance(error, _CONNECTION_ERRORS)


def _terminate(connection: Any) -> None:
    """Terminate without a graceful close, which could block."""
    if not connection.is_closed():
        connection.terminate()


def _build_unavailable_error() -> ApiError:
    return unavailable("The database is unavailable. Try again shortly.")
