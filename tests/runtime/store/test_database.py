"""Database access: transactions, errors, lost connections, timeouts and recovery."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from tapgate.runtime.store import database as database_module
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.embedded import EmbeddedPostgres
from tapgate_client.errors import ApiError, Code


async def test_jsonb_values_are_python_objects(database: Database) -> None:
    value = {"name": "Aminata", "numbers": [1, 2.5, None], "deep": {"é": "\u0001"}}
    assert await database.fetchval("SELECT $1::jsonb", value) == value
    assert await database.fetchval("SELECT '[1]'::jsonb || $1", [2]) == [1, 2]


async def test_transaction_is_atomic(database: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        async with database.transaction() as tx:
            await tx.execute("INSERT INTO installation VALUES ('a', '1')")
            _ = 1 / 0
    assert await database.fetch("SELECT * FROM installation") == []
    async with database.transaction() as tx:
        await tx.execute("INSERT INTO installation VALUES ('a', '1')")
    assert await database.fetchval("SELECT value FROM installation") == "1"


async def test_statement_errors_are_raised_unchanged(database: Database) -> None:
    with pytest.raises(asyncpg.UndefinedTableError):
        await database.fetch("SELECT * FROM nowhere")
    with pytest.raises(asyncpg.InterfaceError):
        await database.fetch("SELECT $1::int", 1, 2)
    assert await database.fetchval("SELECT 1") == 1


async def test_terminated_session_is_503_and_the_next_query_works(database: Database) -> None:
    with pytest.raises(ApiError) as raised:
        async with database.transaction() as tx:
            await tx.execute("INSERT INTO installation VALUES ('a', '1')")
            await database.execute("SELECT pg_terminate_backend($1)", tx.get_server_pid())
            await tx.execute("INSERT INTO installation VALUES ('b', '2')")
    assert raised.value.code == Code.SERVICE_UNAVAILABLE
    assert raised.value.headers["Retry-After"] == "1"
    assert await database.fetch("SELECT * FROM installation") == []


async def test_session_terminated_while_idle_is_replaced_or_503(database: Database) -> None:
    for _ in range(50):
        async with database.connection() as connection:
            pid = connection.get_server_pid()
        async with database.connection() as first, database.connection() as second:
            victim, killer = (first, second) if first.get_server_pid() == pid else (second, first)
            await killer.execute("SELECT pg_terminate_backend($1)", victim.get_server_pid())
        try:
            assert await database.fetchval("SELECT 1") == 1
        except ApiError as error:
            assert error.code == Code.SERVICE_UNAVAILABLE


async def test_canceled_task_releases_its_connection(database_url: str) -> None:
    database = await Database.connect(database_url, size=1)
    started = asyncio.Event()

    async def wait() -> None:
        async with database.transaction() as tx:
            started.set()
            await tx.execute("SELECT pg_sleep(60)")

    task = asyncio.create_task(wait())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await database.fetchval("SELECT 1") == 1
    await database.close()


class TestOutage:
    """Outages on a dedicated server that the test can stop."""

    @pytest.fixture
    def server(self, data_dir: Path) -> Iterator[EmbeddedPostgres]:
        server = EmbeddedPostgres(data_dir)
        server.start()
        yield server
        server.stop()

    @pytest.fixture
    async def isolated_database(self, server: EmbeddedPostgres) -> AsyncIterator[Database]:
        database = await Database.connect(server.url)
        yield database
        await database.close()

    async def test_queries_work_again_after_a_server_restart(
        self, server: EmbeddedPostgres, isolated_database: Database
    ) -> None:
        assert await isolated_database.fetchval("SELECT 1") == 1
        server.stop()
        await assert_unavailable(isolated_database)
        server.start()
        assert await isolated_database.fetchval("SELECT 1") == 1

    async def test_outage_during_a_transaction_is_503_and_rolls_back(
        self, server: EmbeddedPostgres, isolated_database: Database
    ) -> None:
        with pytest.raises(ApiError) as raised:
            async with isolated_database.transaction() as tx:
                await tx.execute("CREATE TABLE half_done ()")
                server.stop()
                await tx.execute("SELECT 1")
        assert raised.value.code == Code.SERVICE_UNAVAILABLE
        server.start()
        assert await isolated_database.fetchval("SELECT to_regclass('half_done')") is None

    async def test_unresponsive_server_is_503_after_the_timeout(
        self, server: EmbeddedPostgres, isolated_database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Long enough for the first query to succeed on a busy machine.
        monkeypatch.setattr(database_module, "DATABASE_TIMEOUT_SECONDS", 4.0)
        database = await Database.connect(server.url)
        async with database.transaction() as tx:
            session = await tx.fetchval("SELECT pg_backend_pid()")
            pids = [session, get_server_pid(server)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            async with asyncio.timeout(60):  # fails instead of hanging
                await assert_unavailable(database)  # on the existing connection
                monkeypatch.setattr(database_module, "DATABASE_TIMEOUT_SECONDS", 1.0)
                await assert_unavailable(database)  # on a new connection
                await database.close()
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        monkeypatch.setattr(database_module, "DATABASE_TIMEOUT_SECONDS", 30.0)
        assert await isolated_database.fetchval("SELECT 1") == 1


async def test_timeout_while_waiting_for_a_connection_is_503(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = await Database.connect(database_url, size=1)
    async with database.connection():
        with monkeypatch.context() as patch:
            patch.setattr(database_module, "DATABASE_TIMEOUT_SECONDS", 0.2)
            await assert_unavailable(database)
    assert await database.fetchval("SELECT 1") == 1
    await database.close()


async def test_unreachable_database_is_503(tmp_path: Path) -> None:
    for url in (
        f"postgresql://postgres@/tapgate?host={tmp_path}",
        "postgresql://postgres@127.0.0.1:1/tapgate",
    ):
        database = await Database.connect(url)
        await assert_unavailable(database)
        await database.close()


async def assert_unavailable(database: Database) -> None:
    with pytest.raises(ApiError) as raised:
        async with database.transaction() as tx:
            await tx.execute("SELECT 1")
    assert raised.value.code == Code.SERVICE_UNAVAILABLE


def get_server_pid(server: EmbeddedPostgres) -> int:
    return int((server.data_dir / "pgdata" / "postmaster.pid").read_text().split()[0])
