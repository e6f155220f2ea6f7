"""Server-side session limits: timeouts, canceled work, and waiting for locks."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from cases import each
from tapgate.runtime.store import database as database_module
from tapgate.runtime.store.connection_budget import (
    SPARE_CONNECTIONS,
    divide_connections,
    list_capacity_warnings,
)
from tapgate.runtime.store.connection_settings import MIGRATION_LIMITS, build_payment_limits
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.migrate import open_checked_connection
from tapgate.runtime.store.signals import Signals
from tapgate_client.errors import ApiError, Code

_SETTINGS = (
    "lock_timeout",
    "statement_timeout",
    "idle_in_transaction_session_timeout",
    "client_connection_check_interval",
)
_POOL_SIZE = 4


@pytest.fixture
async def observer(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def read_settings(connection: asyncpg.Connection) -> list[str]:
    return [
        await connection.fetchval("SELECT current_setting($1)", setting) for setting in _SETTINGS
    ]


async def test_every_kind_of_session_has_server_side_timeouts(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "DATABASE_TIMEOUT_SECONDS", 4.0)
    requests = await Database.connect(database_url)
    payments = await Database.connect(database_url, build_limits=build_payment_limits)
    async with requests.connection() as connection:
        assert await read_settings(connection) == ["2s", "3500ms", "30s", "1s"]
    async with payments.connection() as connection:
        assert await read_settings(connection) == ["2s", "3500ms", "5s", "1s"]
    async with requests.dedicated_connection() as connection:
        assert await read_settings(connection) == ["30s", "1h", "5min", "1s"]
    async with requests.snapshot(timeout_seconds=60) as connection:
        assert await read_settings(connection) == ["2s", "1min", "30s", "1s"]
    for command, limits in (
        (await open_checked_connection(database_url), ["1min", "0", "1h", "10s"]),
        (
            await open_checked_connection(database_url, MIGRATION_LIMITS),
            ["300ms", "0", "1min", "1s"],
        ),
    ):
        assert await read_settings(command) == limits
        await command.close()
    await requests.close()
    await payments.close()


async def test_listener_has_server_side_timeouts(database_url: str) -> None:
    signals = Signals(database_url)
    await signals.start()
    try:
        assert await read_settings(signals.connection) == ["2s", "2s", "30s", "1s"]
    finally:
        await signals.stop()


async def test_database_url_overrides_the_timeouts_of_requests_only(database_url: str) -> None:
    url = (
        f"{database_url}&lock_timeout=7s&statement_timeout=8s&client_connection_check_interval=9s"
        "&idle_in_transaction_session_timeout=10s"
    )
    database = await Database.connect(url)
    async with database.connection() as connection:
        assert await read_settings(connection) == ["7s", "8s", "10s", "9s"]
    async with database.dedicated_connection() as connection:
        assert (await read_settings(connection))[1] == "1h"
    await database.close()
    command = await open_checked_connection(url)
    assert (await read_settings(command))[1] == "0"
    await command.close()


async def count_sessions(observer: asyncpg.Connection, query: str = "%") -> int:
    count: int = await observer.fetchval(
        """SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
           AND pid <> pg_backend_pid() AND state = 'active' AND query LIKE $1""",
        query,
    )
    return count


@each("in_transaction", [True, False])
async def test_canceled_statement_ends_on_the_server(
    database: Database, observer: asyncpg.Connection, in_transaction: bool
) -> None:
    async def sleep() -> None:
        if in_transaction:
            async with database.transaction() as tx:
                await tx.execute("SELECT pg_sleep(90)")
        else:
            await database.execute("SELECT pg_sleep(90)")

    task = asyncio.create_task(sleep())
    while not await count_sessions(observer, "%pg_sleep%"):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(60):
        while await count_sessions(observer, "%pg_sleep%"):
            await asyncio.sleep(0.01)


async def test_statement_that_exceeds_its_timeout_is_503_and_keeps_the_connection(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = await Database.connect(f"{database_url}&statement_timeout=1s", size=1)
    pid = await database.fetchval("SELECT pg_backend_pid()")
    with pytest.raises(ApiError) as raised:
        async with database.transaction() as tx:
            await tx.execute("INSERT INTO installation VALUES ('a', '1')")
            await tx.execute("SELECT pg_sleep(25)")
    assert raised.value.code == Code.SERVICE_UNAVAILABLE
    assert raised.value.headers["Retry-After"] == "1"
    assert await database.fetchval("SELECT pg_backend_pid()") == pid
    assert await database.fetch("SELECT FROM installation") == []
    await database.close()


async def test_locked_table_does_not_use_up_connections(
    database_url: str, observer: asyncpg.Connection
) -> None:
    database = await Database.connect(f"{database_url}&lock_timeout=100ms", size=_POOL_SIZE)

    async def read() -> Code | None:
        try:
            await database.fetch("SELECT FROM installation")
        except ApiError as error:
            assert error.headers["Retry-After"] == "1"
            return error.code
        return None

    async with observer.transaction():
        await observer.execute("LOCK TABLE installation IN ACCESS EXCLUSIVE MODE")
        codes = await asyncio.gather(*(read() for _ in range(5 * _POOL_SIZE)))
        assert set(codes) == {Code.SERVICE_UNAVAILABLE}
        assert await count_sessions(observer) == 0
        opened = await observer.fetchval(
            """SELECT count(*) FROM pg_stat_activity
               WHERE datname = current_database() AND application_name = 'tapgate'"""
        )
        assert opened <= _POOL_SIZE
    assert await read() is None
    await database.close()


@each("connections", [12, 20, 100])
def test_connections_of_a_process_add_up(connections: int) -> None:
    shares = divide_connections(connections)
    assert shares.requests + shares.queue + 5 == connections
    assert shares.requests > 4  # slots of expensive reads
    assert shares.queue >= 1


async def test_node_that_needs_more_connections_than_the_server_has_is_reported(
    database_url: str, observer: asyncpg.Connection
) -> None:
    usable = int(await observer.fetchval("SHOW max_connections")) - 3
    assert await list_capacity_warnings(database_url, usable // 4) == []
    (warning,) = await list_capacity_warnings(database_url, usable - SPARE_CONNECTIONS)
    assert f"may open {usable - SPARE_CONNECTIONS} database connections" in warning
    assert f"the server allows {usable}" in warning
