"""Servers that are read-only or silent: 503, and reconnection to a server that accepts writes."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from drivers.database_sessions import set_read_only
from drivers.standby import Standby
from tapgate.runtime.store import database as database_module
from tapgate.runtime.store import hosts
from tapgate.runtime.store.connect import open_connection
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.embedded import EmbeddedPostgres
from tapgate.runtime.store.server_status import get_server_status
from tapgate.runtime.store.signals import Signals
from tapgate.runtime.store.url import parse_url
from tapgate_client.errors import ApiError, Code

_INSERT = "INSERT INTO installation VALUES ('a', '1')"
_GET_ADDRESS = "SELECT current_setting('unix_socket_directories')"


@pytest.fixture(autouse=True)
def _forget_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "last_used", {})
    monkeypatch.setattr(database_module, "RETIRE_INTERVAL_SECONDS", 0.0)


@pytest.fixture
async def read_only_url(database_url: str) -> AsyncIterator[str]:
    """Yield a URL for a database that can be made read-only, and make it writable again."""
    yield database_url
    await set_read_only(database_url, is_read_only=False)


async def write_until_rejected(database: Database) -> ApiError:
    """Write until the sessions have read the server's configuration."""
    while True:
        try:
            async with database.transaction() as tx:
                await tx.execute("DELETE FROM installation")
                await tx.execute(_INSERT)
        except ApiError as error:
            return error


async def test_read_only_server_is_503_and_its_connections_are_replaced(
    read_only_url: str,
) -> None:
    database = await Database.connect(read_only_url)
    async with database.connection() as in_use:
        pids = {in_use.get_server_pid(), await database.fetchval("SELECT pg_backend_pid()")}
        await set_read_only(read_only_url, is_read_only=True)
        error = await write_until_rejected(database)
    assert error.code == Code.SERVICE_UNAVAILABLE
    assert error.headers["Retry-After"] == "1"
    assert await database.fetchval("SELECT pg_backend_pid()") not in pids
    assert (await get_server_status(database)).is_read_only
    await set_read_only(read_only_url, is_read_only=False)
    await database.execute("DELETE FROM installation")
    await database.close()


async def test_read_only_server_opens_few_connections(
    read_only_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests to a server that stays read-only do not open a new connection each."""
    monkeypatch.setattr(database_module, "RETIRE_INTERVAL_SECONDS", 3600.0)
    database = await Database.connect(read_only_url, size=1)
    await set_read_only(read_only_url, is_read_only=True)
    await write_until_rejected(database)
    pids = set()
    for _ in range(5):
        await write_until_rejected(database)
        pids.add(await database.fetchval("SELECT pg_backend_pid()"))
    assert len(pids) == 1
    await database.close()


async def test_process_does_not_listen_on_a_read_only_server(
    read_only_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes are published on the writable server, so cached values could become stale."""
    monkeypatch.setattr("tapgate.runtime.store.signals.HEARTBEAT_SECONDS", 0.05)
    signals = Signals(read_only_url)
    await signals.start()
    assert signals.is_listening
    await set_read_only(read_only_url, is_read_only=True)
    async with asyncio.timeout(30):
        while signals.is_listening:
            await asyncio.sleep(0.01)
        await set_read_only(read_only_url, is_read_only=False)
        while not signals.is_listening:
            await asyncio.sleep(0.01)
    await signals.stop()


class TestSeveralHosts:
    @pytest.fixture
    def first(self, data_dir: Path) -> Iterator[EmbeddedPostgres]:
        server = EmbeddedPostgres(data_dir)
        server.start()
        yield server
        server.stop()

    @staticmethod
    def get_folder(url: str) -> str:
        return str(parse_url(url).hosts[0][0])

    async def test_writes_move_to_the_writable_host(
        self, first: EmbeddedPostgres, postgres: str
    ) -> None:
        folders = [self.get_folder(first.url), self.get_folder(postgres)]
        url = first.url.replace(f"host={folders[0]}", f"host={','.join(folders)}")
        database = await Database.connect(url)
        original = await database.fetchval(_GET_ADDRESS)
        await set_read_only(first.url, is_read_only=True)
        async with asyncio.timeout(30):
            while await database.fetchval(_GET_ADDRESS) == original:
                await get_server_status(database)
        first.stop()
        assert not (await get_server_status(database)).is_read_only
        await database.close()


class TestStandby:
    @pytest.fixture
    def primary(self, data_dir: Path) -> Iterator[EmbeddedPostgres]:
        server = EmbeddedPostgres(data_dir)
        server.start()
        yield server
        server.stop()

    @pytest.fixture
    async def standby_url(self, primary: EmbeddedPostgres, data_dir: Path) -> AsyncIterator[str]:
        folder = data_dir.parent / "standby"
        standby = Standby(primary, folder)
        standby.start()
        url = f"postgresql://postgres@/tapgate?host={folder}"
        try:
            async with asyncio.timeout(60):
                while not await is_reachable(url):
                    await asyncio.sleep(0.02)
            yield url
        finally:
            standby.remove()

    async def test_standby_is_used_for_writes_only_after_its_promotion(
        self, primary: EmbeddedPostgres, standby_url: str
    ) -> None:
        """The standby comes first in the URL."""
        await self.require_503_for_query_canceled_by_replication(primary.url, standby_url)
        folder = parse_url(primary.url).hosts[0][0]
        database = await Database.connect(f"{standby_url},{folder}")
        await database.execute("CREATE TABLE payments (id int PRIMARY KEY)")
        await wait_for_table(standby_url, "payments")
        primary.stop()
        with pytest.raises(ApiError) as raised:
            await database.execute("INSERT INTO payments VALUES (1)")
        assert raised.value.code == Code.SERVICE_UNAVAILABLE
        async with asyncio.timeout(60):
            promoter = await asyncpg.connect(standby_url)
            await promoter.execute("SELECT pg_promote()")
            await promoter.close()
            await database.execute("INSERT INTO payments VALUES (1)")
        await database.close()

    async def require_503_for_query_canceled_by_replication(
        self, primary_url: str, standby_url: str
    ) -> None:
        writer, standby = await asyncpg.connect(primary_url), await asyncpg.connect(standby_url)
        await writer.execute("CREATE TABLE dropped ()")
        await standby.execute("ALTER SYSTEM SET max_standby_streaming_delay = 0")
        await standby.execute("SELECT pg_reload_conf()")
        await wait_for_table(standby_url, "dropped")
        reader = await Database.connect(standby_url)
        with pytest.raises(ApiError) as raised:
            async with reader.snapshot() as snapshot:
                await snapshot.fetch("SELECT FROM dropped")
                await writer.execute("DROP TABLE dropped")
                while True:
                    await snapshot.fetch("SELECT FROM dropped, pg_sleep(0.01)")
        assert raised.value.code == Code.SERVICE_UNAVAILABLE
        await reader.close()
        for connection in (writer, standby):
            await connection.close()


async def is_reachable(url: str) -> bool:
    try:
        await (await asyncpg.connect(url)).close()
    except (asyncpg.PostgresError, OSError):
        return False
    return True


async def wait_for_table(url: str, name: str) -> None:
    connection = await asyncpg.connect(url)
    async with asyncio.timeout(60):
        while await connection.fetchval("SELECT to_regclass($1)", name) is None:
            await asyncio.sleep(0.01)
    await connection.close()


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Yield a port that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield silent.getsockname()[1]


async def test_silent_first_host_delays_only_the_first_connection(
    database_url: str, silent_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last used host is tried first, so later connections do not try the silent host."""
    folder = parse_url(database_url).hosts[0][0]
    url = database_url.replace(
        f"host={folder}", f"host=127.0.0.1,{folder}&port={silent_port},5432&sslmode=disable"
    )
    await (await open_connection(url, timeout=60)).close()
    tried: list[hosts.Host] = []
    run = hosts.Attempts.run

    async def record(attempts: hosts.Attempts, seconds: float) -> object:
        tried.append(attempts.untried[0])
        return await run(attempts, 3600)  # never tries another host

    monkeypatch.setattr(hosts.Attempts, "run", record)
    await (await open_connection(url, timeout=60)).close()
    assert tried == [(folder, 5432)]


async def test_all_hosts_silent_is_an_error_after_the_timeout_of_one(silent_port: int) -> None:
    address = f"127.0.0.1:{silent_port}"
    url = f"postgresql://postgres@{address},{address},{address}/x?sslmode=disable"
    with pytest.raises(TimeoutError):
        await open_connection(url, timeout=0.2)


async def test_canceled_attempts_leave_no_connection(database_url: str) -> None:
    folder = parse_url(database_url).hosts[0][0]
    url = database_url.replace(f"host={folder}", f"host={folder},{folder}")
    observer = await asyncpg.connect(database_url)
    count = """SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"""
    before = await observer.fetchval(count)
    attempts = [asyncio.create_task(open_connection(url, timeout=60)) for _ in range(5)]
    while await observer.fetchval(count) == before:
        await asyncio.sleep(0)
    for attempt in attempts:
        attempt.cancel()
    for result in await asyncio.gather(*attempts, return_exceptions=True):
        if not isinstance(result, BaseException):
            await result.close()
    async with asyncio.timeout(30):
        while await observer.fetchval(count) > before:
            await asyncio.sleep(0.01)
    await observer.close()
