"""Point-in-time recovery from a base backup and archived WAL, as docs/deploying.md describes it."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest

from drivers.in_process import AppTransport
from drivers.processes import run_command_on
from drivers.standby import take_base_backup
from harness import PIN, BearerAuth, Harness
from tapgate.core.id_generator import IdGenerator
from tapgate.core.settings import Settings, load_settings
from tapgate.ledger.rules.loaded_rules import insert_defaults
from tapgate.runtime.store.embedded import EmbeddedPostgres
from tapgate.runtime.store.server_user import resolve_server_user
from tapgate.server.gateway import create_app, open_gateway_services


@pytest.fixture
def archive(public_tmp_path: Path, data_dir: Path) -> Path:
    """Return a folder for archived WAL that the server's user can write to."""
    folder = public_tmp_path / "archive"
    folder.mkdir(mode=0o700)
    resolve_server_user(data_dir / "pgdata").chown(folder)
    public_tmp_path.chmod(0o711)
    return folder


def configure(pgdata: Path, **settings: str) -> None:
    with (pgdata / "postgresql.auto.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())


@pytest.fixture
def server(data_dir: Path, archive: Path) -> Iterator[EmbeddedPostgres]:
    """A server that archives its WAL."""
    configure(
        data_dir / "pgdata",
        fsync="off",  # processes are killed, but not the machine
        archive_mode="on",
        archive_command=(
            f"test ! -f {archive}/%f.gz && gzip <%p >{archive}/%f.tmp"
            f" && mv {archive}/%f.tmp {archive}/%f.gz"
        ),
    )
    server = EmbeddedPostgres(data_dir)
    server.start()
    yield server
    server.stop()


@asynccontextmanager
async def open_harness(settings: Settings, url: str) -> AsyncIterator[Harness]:
    async with open_gateway_services(settings, url) as services:
        transport = AppTransport(create_app(services))
        async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
            yield Harness(services, client)


class Payer:
    """A subscriber who sends 1.00 to another one, and the API key for the app that sends it."""

    def __init__(self, sender: str, card: str, key: BearerAuth) -> None:
        self.sender, self.card, self.key = sender, card, key

    @classmethod
    async def create(cls, harness: Harness) -> "Payer":
        sender, receiver = [await harness.create_subscriber(balance="100") for _ in range(2)]
        card = await harness.create_card(receiver["id"])
        key = await harness.create_api_key("payments:write", "payments:read")
        return cls(sender["id"], card, key)

    async def pay(self, harness: Harness, request_id: str) -> dict[str, Any]:
        """Send a payment, require that it is acknowledged, and return the response."""
        body = {
            "sender_id": self.sender,
            "recipient_card_serial": self.card,
            "amount": "1",
            "pin": PIN,
            "request_id": request_id,
        }
        response = await harness.client.post(
            "/api/v1/wallet/transfer-p2p", json=body, auth=self.key
        )
        assert response.status_code == 200, response.text
        record: dict[str, Any] = response.json()
        return record


async def archive_wal(harness: Harness) -> None:
    """End the current WAL segment, and wait until the server has archived it."""
    segment = await harness.database.fetchval("SELECT pg_walfile_name(pg_switch_wal())")
    async with asyncio.timeout(60):
        while segment > (
            await harness.database.fetchval(
                "SELECT coalesce(last_archived_wal, '') FROM pg_stat_archiver"
            )
        ):
            await asyncio.sleep(0.02)


def recover(server: EmbeddedPostgres, backup: Path, archive: Path, time: datetime) -> None:
    """Replace the server's files by the base backup, and replay archived WAL up to a time."""
    pgdata = server.data_dir / "pgdata"
    assert server.server is not None
    server.server.kill()  # without a last checkpoint
    server.stop()
    shutil.rmtree(pgdata)
    backup.rename(pgdata)
    configure(
        pgdata,
        restore_command=f'gunzip <"{archive}/%f.gz" >"%p"',
        recovery_target_time=time.isoformat(),
        recovery_target_action="promote",
    )
    (pgdata / "recovery.signal").touch()
    server.start()


async def wait_until_promoted(server: EmbeddedPostgres) -> None:
    """Wait until the server has replayed the WAL and accepts writes."""
    connection = await asyncpg.connect(server.url)
    try:
        async with asyncio.timeout(60):
            while await connection.fetchval("SELECT pg_is_in_recovery()"):
                await asyncio.sleep(0.02)
    finally:
        await connection.close()


async def test_recovery_restores_exactly_the_payments_before_the_time(
    server: EmbeddedPostgres, archive: Path, public_tmp_path: Path, tmp_path: Path
) -> None:
    settings = load_settings({"TAPGATE_DATA_DIR": str(tmp_path), "TAPGATE_DEMO": "off"})
    async with open_harness(settings, server.url) as harness:
        async with harness.services.transaction() as tx:
            await insert_defaults(tx, settings.currency, IdGenerator(1023))
        await harness.disable_compliance_rules()
        payer = await Payer.create(harness)
        in_backup = [await payer.pay(harness, f"in-backup-{n}") for n in range(3)]
        await asyncio.to_thread(take_base_backup, server, public_tmp_path / "base")
        kept = [await payer.pay(harness, f"kept-{n}") for n in range(3)]
        time = await harness.database.fetchval("SELECT clock_timestamp()")
        lost = [await payer.pay(harness, f"lost-{n}") for n in range(3)]
        await archive_wal(harness)

    await asyncio.to_thread(recover, server, public_tmp_path / "base", archive, time)
    await wait_until_promoted(server)
    async with open_harness(settings, server.url) as harness:
        verified = await run_command_on(harness.services, "verify", TAPGATE_DATABASE_URL=server.url)
        assert verified.returncode == 0, verified.stdout + verified.stderr
        for payment in (*in_backup, *kept, *lost):
            path = f"/api/v1/transactions/{payment['transaction_id']}"
            response = await harness.client.get(path, auth=payer.key)
            assert response.status_code == (404 if payment in lost else 200)
        # Repeated requests: kept payments are replayed, and a lost one is executed again.
        replayed = await payer.pay(harness, "kept-0")
        assert replayed["transaction_id"] == kept[0]["transaction_id"]
        executed = await payer.pay(harness, "lost-0")
        assert executed["transaction_id"] not in {p["transaction_id"] for p in lost}
        keys = (
            "SELECT request_id FROM idempotency_keys WHERE request_id ~ '^(in-backup|kept|lost)-'"
        )
        stored = {row["request_id"] for row in await harness.database.fetch(keys)}
        expected = {f"{name}-{n}" for name in ("in-backup", "kept") for n in range(3)} | {"lost-0"}
        assert stored == expected
