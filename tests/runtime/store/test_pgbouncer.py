"""PgBouncer in front of PostgreSQL: session mode works, other modes are rejected at startup."""

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from drivers.commands import run_tapgate
from drivers.processes import ADMIN, free_port, open_client, run_gateway
from runtime.store.conftest import build_tcp_url, make_reachable
from tapgate.runtime.store import StoreError, connect
from tapgate.runtime.store.connect import open_connection
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.migrate import migrate
from tapgate.runtime.store.server_user import resolve_server_user
from tapgate.runtime.store.signals import Signals
from tapgate.runtime.store.url import parse_url

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
pytestmark = pytest.mark.skipif(
    PGBOUNCER is None and os.environ.get("TAPGATE_TEST_PGBOUNCER") != "required",
    reason="pgbouncer is not installed",
)

POOL_MODE_ERROR = "shares connections between transactions. Set pool_mode = session"


@contextlib.asynccontextmanager
async def run_pgbouncer(
    url: str, folder: Path, mode: str, **settings: object
) -> AsyncIterator[str]:
    """Run PgBouncer as a non-root user and yield a URL that reaches the database through it."""
    sockets, port = Path(str(parse_url(url).hosts[0][0])), free_port()
    user = resolve_server_user(sockets)
    make_reachable(sockets)
    (folder / "users").write_text('"postgres" ""\n')
    options = {
        "listen_addr": "127.0.0.1",
        "listen_port": port,
        "unix_socket_dir": "",
        "auth_type": "trust",
        "auth_file": folder / "users",
        "pool_mode": mode,
        **settings,
    }
    lines = [f"{name} = {value}" for name, value in options.items()]
    text = "\n".join(["[databases]", f"* = host={sockets}", "[pgbouncer]", *lines, ""])
    (folder / "pgbouncer.ini").write_text(text)
    await asyncio.to_thread(folder.chmod, 0o755)
    assert PGBOUNCER is not None
    process = await asyncio.to_thread(
        subprocess.Popen,
        [PGBOUNCER, "-q", folder / "pgbouncer.ini"],
        cwd="/",
        **user.popen_arguments(),
    )
    try:
        while not _is_port_open(port):
            assert process.poll() is None
            await asyncio.sleep(0.01)
        yield build_tcp_url(url, "127.0.0.1", port)
    finally:
        process.kill()
        process.wait()


def _is_port_open(port: int) -> bool:
    with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@pytest.fixture(autouse=True)
def _clear_pooler_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "session_pooled_urls", set())


async def test_session_mode_supports_settings_signals_and_migrations(
    database_url: str, public_tmp_path: Path
) -> None:
    async with run_pgbouncer(database_url, public_tmp_path, "session") as url:
        assert await migrate(url) == []
        database = await Database.connect(url, session={"enable_seqscan": "off"})
        signals, other_signals = Signals(url), Signals(url)
        received: list[str] = []
        other_signals.subscribe("keys", received.append)
        try:
            await signals.start()
            await other_signals.start()
            async with database.transaction() as tx:
                ticket = await signals.publish(tx, "keys", "changed")
            # Ends before the timeout only if both listeners acknowledge with their registered IDs.
            await asyncio.wait_for(signals.collect_acks(ticket), 30)
            assert received == ["changed"]
            for name, value in [
                ("enable_seqscan", "off"),
                ("jit", "off"),
                ("application_name", "tapgate"),
                ("client_connection_check_interval", "1s"),
                ("idle_in_transaction_session_timeout", "30s"),
            ]:
                assert await database.fetchval("SELECT current_setting($1)", name) == value
        finally:
            await signals.stop()
            await other_signals.stop()
            await database.close()


async def test_session_mode_works_with_a_pool_of_one_connection(
    database_url: str, public_tmp_path: Path
) -> None:
    """The pool mode check's second connection has to wait; the check must still pass."""
    async with run_pgbouncer(database_url, public_tmp_path, "session", default_pool_size=1) as url:
        connection = await open_connection(url, timeout=30)
        try:
            assert await connection.fetchval("SELECT 1") == 1
        finally:
            await connection.close()


@pytest.mark.parametrize(
    ("mode", "settings", "idle"),
    [
        *(("transaction", {}, idle) for idle in (0, 1, 3)),
        *(("transaction", {"server_round_robin": 1}, idle) for idle in (1, 2, 3)),
        *(("transaction", {"default_pool_size": 1}, idle) for idle in (0, 1)),
        ("statement", {}, 0),
    ],
)
async def test_other_pool_modes_are_rejected(
    database_url: str, public_tmp_path: Path, mode: str, settings: dict[str, object], idle: int
) -> None:
    """The check works for any number of open server connections in PgBouncer's pool."""
    async with run_pgbouncer(database_url, public_tmp_path, mode, **settings) as url:
        await _fill_pool(url, idle)
        for attempt in (migrate, _run_query):
            with pytest.raises(StoreError, match=POOL_MODE_ERROR) as raised:
                await attempt(url)
            assert "\n" not in str(raised.value)


async def _run_query(url: str) -> None:
    database = await Database.connect(url)
    try:
        await database.fetchval("SELECT 1")
    finally:
        await database.close()


async def _fill_pool(url: str, count: int) -> None:
    """Leave this many idle server connections in the pool by running overlapping queries."""
    parsed = parse_url(url)
    connections = [await connect.connect_once(parsed, 30, None) for _ in range(count)]
    await asyncio.gather(
        *(connection.execute("SELECT pg_sleep(0.2)") for connection in connections)
    )
    for connection in connections:
        await connection.close()


async def test_startup_through_transaction_mode_fails_with_one_line(
    database_url: str, public_tmp_path: Path
) -> None:
    async with run_pgbouncer(database_url, public_tmp_path, "transaction") as url:
        for arguments in (("serve",), ("verify",), ("backup", "-")):
            status, _, error = await run_tapgate(
                public_tmp_path / "data", *arguments, url=url, TAPGATE_PORT=str(free_port())
            )
            assert (status, error.count("\n")) == (1, 1), error
            assert POOL_MODE_ERROR in error


async def test_gateway_runs_through_session_mode(database_url: str, public_tmp_path: Path) -> None:
    async with (
        run_pgbouncer(database_url, public_tmp_path, "session", default_pool_size=100) as url,
        run_gateway(public_tmp_path, url, workers=2) as address,
        open_client(address) as client,
    ):
        assert (await client.get("/health")).json()["healthy"] is True
        login = await client.post("/api/v1/admin/login", json=ADMIN)
        assert login.status_code == 200, login.text
