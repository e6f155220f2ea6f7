"""A node whose database commits nothing is not ready, says why, and recovers without flapping.

The faults are real: a full file system, a lock, missing standbys and a read-only server.
"""

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple

import asyncpg
import httpx2
import pytest

from drivers.database_sessions import set_read_only
from drivers.in_process import AppTransport
from drivers.processes import freeze_processes
from drivers.standby import Standby
from harness import PIN, Harness
from tapgate.core.id_generator import IdGenerator
from tapgate.core.settings import load_settings
from tapgate.ledger.rules.loaded_rules import insert_defaults
from tapgate.runtime.store.embedded import EmbeddedPostgres
from tapgate.runtime.store.migrate import migrate
from tapgate.runtime.store.server_user import resolve_server_user
from tapgate.server.gateway import create_app, open_gateway_services

#: Documented as three seconds; this bound detects a hang even on a slow machine.
_MAX_CHECKS = 100


class Installation(NamedTuple):
    server: EmbeddedPostgres
    url: str
    #: The file system of the database's tablespace; None if it is the server's.
    disk: Path | None


@contextlib.contextmanager
def mount_small_disk(folder: Path) -> Iterator[None]:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=128m", "none", folder]
    result = subprocess.run(command, capture_output=True, check=False)
    if result.returncode:
        pytest.skip(f"cannot mount a file system: {result.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def server(data_dir: Path) -> Iterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(data_dir)
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def installation(
    server: EmbeddedPostgres, public_tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Installation]:
    """A migrated database, on a small file system of its own if the fault needs one."""
    if request.node.callspec.params["fault"] is not fill_disk:
        yield Installation(server, server.url, None)
        return
    disk = public_tmp_path / "disk"
    public_tmp_path.chmod(0o711)  # noqa: ASYNC240 - the server's user must reach the folder
    with mount_small_disk(disk):
        folder = disk / "tablespace"
        folder.mkdir()
        resolve_server_user(server.data_dir / "pgdata").chown(folder)
        connection = await asyncpg.connect(server.url)
        await connection.execute(f"CREATE TABLESPACE small LOCATION '{folder}'")
        await connection.execute("CREATE DATABASE payments TABLESPACE small")
        url = server.url.replace("@/tapgate?", "@/payments?")
        assert url != server.url
        await migrate(url)
        yield Installation(server, url, disk)
        await connection.execute("DROP DATABASE payments WITH (FORCE)")
        await connection.execute("DROP TABLESPACE small")
        await connection.close()


@pytest.fixture
async def harness(installation: Installation, tmp_path: Path) -> AsyncIterator[Harness]:
    settings = load_settings({"TAPGATE_DATA_DIR": str(tmp_path)})
    async with open_gateway_services(settings, installation.url) as services:
        async with services.transaction() as tx:
            await insert_defaults(tx, settings.currency, IdGenerator(1023))
        transport = AppTransport(create_app(services))
        async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
            yield Harness(services, client)


@contextlib.asynccontextmanager
async def fill_disk(installation: Installation) -> AsyncIterator[None]:
    assert installation.disk is not None
    filler = installation.disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(65536)):
            pass
    assert shutil.disk_usage(installation.disk).free < os.sysconf("SC_PAGESIZE") * 16
    yield
    filler.unlink()


@contextlib.asynccontextmanager
async def lock_entries(installation: Installation) -> AsyncIterator[None]:
    connection = await asyncpg.connect(installation.url)
    async with connection.transaction():
        await connection.execute("LOCK TABLE entries IN ACCESS EXCLUSIVE MODE")
        yield
    await connection.close()


@contextlib.asynccontextmanager
async def wait_for_nobody(installation: Installation) -> AsyncIterator[None]:
    """Let commits wait for a standby that does not exist."""
    connection = await asyncpg.connect(installation.url)
    for names in ("nobody", ""):
        await connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
        await connection.execute("SELECT pg_reload_conf()")
        if names:
            yield
    await connection.close()


@contextlib.asynccontextmanager
async def make_read_only(installation: Installation) -> AsyncIterator[None]:
    await set_read_only(installation.url, is_read_only=True)
    yield
    await set_read_only(installation.url, is_read_only=False)


Fault = Callable[[Installation], AbstractAsyncContextManager[None]]


async def get_reasons(harness: Harness) -> list[str]:
    """Return the reasons of `/ready`, with which `/health` agrees."""
    ready = await harness.client.get("/ready")
    reasons = [reason["code"] for reason in ready.json()["reasons"]]
    assert ready.status_code == (503 if reasons else 200)
    return reasons


async def check_until(harness: Harness, expected: list[str]) -> None:
    for _ in range(_MAX_CHECKS):
        if (reasons := await get_reasons(harness)) == expected:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(reasons)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (fill_disk, "database_disk_full"),
        (lock_entries, "ledger_locked"),
        (wait_for_nobody, "no_synchronous_standby"),
        (make_read_only, "database_read_only"),
    ],
)
async def test_node_that_cannot_commit_is_not_ready_until_it_can(
    harness: Harness, installation: Installation, fault: Fault, reason: str
) -> None:
    assert await get_reasons(harness) == []
    async with fault(installation):
        await check_until(harness, [reason])
        # A fault that lasts is reported by every check.
        for _ in range(20):
            assert await get_reasons(harness) == [reason]
            await asyncio.sleep(0.1)
        health = (await harness.client.get("/health")).json()
        assert [item["code"] for item in health["reasons"]] == [reason]
        assert (health["healthy"], health["wallet_core"]["healthy"]) == (False, False)
        assert "\ntapgate_ready 0.0\n" in (await harness.client.get("/metrics")).text
    await check_until(harness, [])
    for _ in range(20):
        assert await get_reasons(harness) == []
        await asyncio.sleep(0.1)
    assert "\ntapgate_ready 1.0\n" in (await harness.client.get("/metrics")).text


@pytest.mark.parametrize("fault", [fill_disk])
async def test_payments_find_a_full_disk_that_the_probe_does_not_see(
    harness: Harness, installation: Installation, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def probe_nothing() -> None:
        return None

    commits = harness.services.health.commits
    assert commits is not None
    monkeypatch.setattr(commits, "probe", probe_nothing)
    sender, receiver = [await harness.create_subscriber(balance="1000") for _ in range(2)]
    key = await harness.create_api_key("payments:write")
    body = {"recipient_card_serial": await harness.create_card(receiver["id"]), "pin": PIN}
    body |= {"sender_id": sender["id"], "amount": "1"}

    async def pay(number: int) -> int:
        request = {**body, "request_id": f"payment {number}"}
        response = await harness.client.post("/api/v1/wallet/transfer-p2p", json=request, auth=key)
        return response.status_code

    async with fault(installation):
        numbers = iter(range(1000))  # the first ones find room on existing pages
        while await pay(last := next(numbers)) == 200:
            pass
        await check_until(harness, ["database_disk_full"])
    assert await pay(last) == 200
    await check_until(harness, [])


@pytest.mark.parametrize("fault", [wait_for_nobody])
async def test_probes_leave_no_sessions_that_wait_for_standbys(
    harness: Harness, installation: Installation, fault: Fault
) -> None:
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    observer = await asyncpg.connect(installation.url)
    async with fault(installation):
        await check_until(harness, ["no_synchronous_standby"])
        for _ in range(40):
            await get_reasons(harness)
            assert await observer.fetchval(waiting) <= 1
            await asyncio.sleep(0.1)
    await observer.close()


@pytest.mark.parametrize("fault", [wait_for_nobody])
async def test_silent_standby_does_not_count(
    harness: Harness, installation: Installation, fault: Fault, public_tmp_path: Path
) -> None:
    async def get_replication() -> dict[str, object]:
        body = (await harness.client.get("/health")).json()
        replication: dict[str, object] = body["replication"]
        return replication

    async def wait_for_count(count: int) -> dict[str, object]:
        for _ in range(_MAX_CHECKS):
            replication = await get_replication()
            if replication["synchronous_standbys"] == count:
                return replication
            await asyncio.sleep(0.1)
        raise AssertionError(replication)

    async with fault(installation):
        standby = Standby(installation.server, public_tmp_path / "standby", name="nobody")
        standby.start()
        try:
            assert (await wait_for_count(1))["mode"] == "synchronous"
            await check_until(harness, [])
            thaw = freeze_processes(public_tmp_path / "standby")
            try:
                silent = await wait_for_count(0)
                assert (silent["mode"], silent["standbys"]) == ("waiting", 1)
                await check_until(harness, ["no_synchronous_standby"])
            finally:
                thaw()
            await wait_for_count(1)
            await check_until(harness, [])
        finally:
            standby.stop()
