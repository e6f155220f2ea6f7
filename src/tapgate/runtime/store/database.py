"""PostgreSQL access that reports every kind of connection failure as 503."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from time import monotonic
from typing import Any, Final, Self, TypeVar

import asyncpg
import msgspec
import structlog

from tapgate.core import telemetry
from tapgate.runtime.store.connect import open_connection
from tapgate.runtime.store.connection_settings import (
    LONG_JOB_LIMITS,
    SessionLimits,
    build_request_limits,
    format_timeout,
)
from tapgate.runtime.store.failures import DATABASE_ERRORS, Failure, classify_failure
from tapgate.runtime.store.pipeline import (
    begin,
    begin_snapshot,
    fetch_and_commit,
    is_open,
    send_ahead,
)
from tapgate.runtime.store.pool import Pool
from tapgate.runtime.store.url import parse_url
from tapgate_client.errors import ApiError

_log = structlog.get_logger()

T = TypeVar("T")

#: Timeout for a statement, for connecting, and for waiting for a pooled connection.
DATABASE_TIMEOUT_SECONDS = 4.0

_SESSION_SETTINGS = {"application_name": "tapgate", "timezone": "UTC", "jit": "off"}
#: Minimum time between two replacements of all connections, so that requests to a server that
#: stays read-only do not open a new connection each.
RETIRE_INTERVAL_SECONDS = 1.0

_SPAN_ATTRIBUTES = {"db.system.name": "postgresql"}

_JSONB_VERSION = b"\x01"


class RaiseAfterCommit(Exception):  # noqa: N818 - an instruction rather than an error
    """Commits the database transaction in which it is raised, and then raises `error`.

    For errors whose cause must be stored, such as a wrong PIN.
    """

    def __init__(self, error: ApiError) -> None:
        super().__init__(error)
        self.error = error


#: For the current database transaction.
USE_GENERIC_PLANS: Final = "SET LOCAL plan_cache_mode = force_generic_plan"


class Database:
    """Pooled access to PostgreSQL that recovers automatically after an outage."""

    def __init__(
        self,
        url: str,
        size: int,
        session: Mapping[str, str],
        build_limits: Callable[[float], SessionLimits],
    ) -> None:
        self._url = url
        self._session = {**_SESSION_SETTINGS, **session}
        self._build_limits = build_limits
        self.pool = Pool(self._open_pooled, size)
        self._retired_at = -RETIRE_INTERVAL_SECONDS

    @classmethod
    async def connect(
        cls,
        url: str,
        *,
        size: int = 10,
        session: Mapping[str, str] | None = None,
        build_limits: Callable[[float], SessionLimits] = build_request_limits,
    ) -> Self:
        """Create a pool. Connections open on demand, so PostgreSQL need not be reachable yet.

        `build_limits` returns session limits for a request timeout; the database
        URL can override them.
        """
        parse_url(url)
        return cls(url, size, session or {}, build_limits)

    async def _open_pooled(self) -> asyncpg.Connection:
        limits = self._build_limits(DATABASE_TIMEOUT_SECONDS)
        return await self._open(
            DATABASE_TIMEOUT_SECONDS, defaults=limits.to_settings(), settings=self._session
        )

    async def _open(
        self, command_timeout: float, **settings: Mapping[str, str]
    ) -> asyncpg.Connection:
        connection = await open_connection(
            self._url,
            timeout=DATABASE_TIMEOUT_SECONDS,
            command_timeout=command_timeout,
            **settings,
        )
        try:
            async with asyncio.timeout(DATABASE_TIMEOUT_SECONDS):
                await register_jsonb_codec(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def close(self) -> None:
        # A connection that is still in use after the timeout is unresponsive.
        with contextlib.suppress(TimeoutError, *DATABASE_ERRORS):
            async with asyncio.timeout(DATABASE_TIMEOUT_SECONDS):
                await self.pool.close()
        self.pool.terminate()

    def retire_connections(self) -> None:
        """Replace all connections, because they belong to a server that accepts no writes.

        A new connection may reach another server.
        """
        if monotonic() - self._retired_at >= RETIRE_INTERVAL_SECONDS:
            self._retired_at = monotonic()
            _log.warning("database.read_only")
            self.pool.retire_all()

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection]:
        connection = await self._acquire()
        try:
            yield connection
        except BaseException as error:
            self._convert_failure(error, connection)
            raise
        finally:
            self.pool.release(connection)

    @contextlib.asynccontextmanager
    async def dedicated_connection(self) -> AsyncIterator[asyncpg.Connection]:
        """Open a connection for a long-running job, so the pool remains available to requests.

        The server ends a statement that exceeds the job limit. The client waits a little
        longer, and only for a server that does not respond.
        """
        settings = {**self._session, **LONG_JOB_LIMITS.to_settings()}
        command_timeout = LONG_JOB_LIMITS.statement + DATABASE_TIMEOUT_SECONDS
        try:
            connection = await self._open(command_timeout, settings=settings)
        except DATABASE_ERRORS as error:
            raise Failure.LOST.build_error() from error
        try:
            yield connection
        except BaseException as error:
            self._convert_failure(error, connection)
            raise
        finally:
            connection.terminate()

    @contextlib.asynccontextmanager
    async def snapshot(
        self, *, timeout_seconds: float | None = None
    ) -> AsyncIterator[asyncpg.Connection]:
        """Open a read-only database transaction whose statements all read the same snapshot.

        `timeout_seconds` replaces the server's timeout for each statement. The caller also passes
        it to the statements.
        """
        async with self.connection() as connection:
            transaction = begin_snapshot(connection)
            if timeout_seconds is not None:
                timeout = format_timeout(timeout_seconds)
                send_ahead(connection, f"SET LOCAL statement_timeout = '{timeout}'")
            try:
                yield connection
            except Exception as error:
                if classify_failure(error, connection) is not Failure.LOST and is_open(transaction):
                    await transaction.rollback()
                raise
            if is_open(transaction):
                await transaction.commit()

    @contextlib.asynccontextmanager
    async def generic_plans(self) -> AsyncIterator[asyncpg.Connection]:
        """Open a snapshot whose statements keep one plan per session.

        For statements over partitions with an ID range: planning them for each call's values takes
        much longer than running them.
        """
        async with self.snapshot() as connection:
            send_ahead(connection, USE_GENERIC_PLANS)
            yield connection

    async def fetch_generic(self, sql: str, *arguments: object) -> list[asyncpg.Record]:
        """Run one statement with `generic_plans`, in one round trip."""
        async with self.generic_plans() as connection:
            return await fetch_and_commit(connection, sql, *arguments)

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[asyncpg.Connection]:
        """Open a database transaction that commits on exit and rolls back on an exception.

        BEGIN is sent together with the first statement. `fetch_and_commit` commits with the last.
        `RaiseAfterCommit` commits it and raises the enclosed error.
        If the connection is lost during the commit, raise 503: the outcome is unknown.
        """
        with telemetry.start_span("database transaction", **_SPAN_ATTRIBUTES):
            async with self.connection() as tx:
                transaction = begin(tx)
                try:
                    yield tx
                except RaiseAfterCommit as request:
                    await transaction.commit()
                    raise request.error from None
                except Exception as error:
                    if classify_failure(error, tx) is not Failure.LOST and is_open(transaction):
                        await transaction.rollback()
                    raise
                if is_open(transaction):
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
        with telemetry.start_span("database statement", **_SPAN_ATTRIBUTES):
            connection = await self._acquire()
            try:
                return await statement(connection)
            except BaseException as error:
                self._convert_failure(error, connection)
                raise
            finally:
                self.pool.release(connection)

    async def _acquire(self) -> asyncpg.Connection:
        try:
            return await self.pool.acquire(DATABASE_TIMEOUT_SECONDS)
        except DATABASE_ERRORS as error:
            raise Failure.LOST.build_error() from error

    def _convert_failure(self, error: BaseException, connection: asyncpg.Connection) -> None:
        """Raise 503 if the error is an outage; terminate the connection if it is unusable."""
        failure = classify_failure(error, connection)
        if failure is Failure.LOST or not isinstance(error, Exception):
            # If canceled, a statement may still be running. The server ends it when it notices
            # that the connection is closed.
            _terminate(connection)
        if failure is Failure.READ_ONLY:
            self.retire_connections()
        if failure is not None:
            raise failure.build_error() from error


async def register_jsonb_codec(connection: asyncpg.Connection) -> None:
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        encoder=lambda value: _JSONB_VERSION + msgspec.json.encode(value),
        decoder=lambda data: msgspec.json.decode(data[len(_JSONB_VERSION) :]),
        format="binary",
    )


def _terminate(connection: Any) -> None:
    """Terminate without a graceful close, which could block."""
    if not connection.is_closed():
        connection.terminate()
