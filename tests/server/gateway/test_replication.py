"""Replication with a real standby: its state in the API, and payments that require it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest

from drivers.in_process import AppTransport
from drivers.standby import Standby
from harness import PIN, Harness
from tapgate.core.id_generator import IdGenerator
from tapgate.core.settings import load_settings
from tapgate.ledger.rules.loaded_rules import insert_defaults
from tapgate.runtime import health
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.embedded import EmbeddedPostgres
from tapgate.runtime.store.server_status import get_server_status
from tapgate.server.gateway import create_app, open_gateway_services


@pytest.fixture
def primary(data_dir: Path) -> Iterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(data_dir)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def standby(primary: EmbeddedPostgres, public_tmp_path: Path) -> Iterator[Standby]:
    standby = Standby(primary, public_tmp_path / "standby")
    yield standby
    standby.stop()


@pytest.fixture
async def harness(
    primary: EmbeddedPostgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Harness]:
    """A gateway that requires synchronous replication, without a cache of check results."""
    settings = load_settings(
        {"TAPGATE_DATA_DIR": str(tmp_path), "TAPGATE_REQUIRE_SYNC_REPLICATION": "on"}
    )
    monkeypatch.setattr(health, "MAX_AGE_SECONDS", 0.0)
    async with open_gateway_services(settings, primary.url) as services:
        async with services.transaction() as tx:
            await insert_defaults(tx, settings.currency, IdGenerator(1023))
        transport = AppTransport(create_app(services))
        async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
            yield Harness(services, client)


async def wait_for_mode(harness: Harness, mode: str) -> dict[str, Any]:
    """Wait until `/health` reports this mode of replication, and return the response body."""
    async with asyncio.timeout(30):
        while True:
            body: dict[str, Any] = (await harness.client.get("/health")).json()
            if body["replication"]["mode"] == mode:
                return body
            await asyncio.sleep(0.02)


async def set_synchronous_standby(primary: EmbeddedPostgres, name: str) -> None:
    connection = await asyncpg.connect(primary.url)
    try:
        await connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
        await connection.execute("SELECT pg_reload_conf()")
    finally:
        await connection.close()


async def require_unknown_without_privilege(harness: Harness, primary: EmbeddedPostgres) -> None:
    """A user who may not read standby state reports that it is unknown."""
    await harness.database.execute("CREATE ROLE app LOGIN")
    for grant, mode in (("SELECT 1", "unknown"), ("GRANT pg_monitor TO app", "asynchronous")):
        await harness.database.execute(grant)
        database = await Database.connect(primary.url.replace("postgres@", "app@"), size=1)
        status = await get_server_status(database)
        await database.close()
        assert status.replication.mode == mode


async def test_payments_require_a_synchronous_standby(
    primary: EmbeddedPostgres, standby: Standby, harness: Harness
) -> None:
    require = harness.services.ledger.before_submit
    harness.services.ledger.before_submit = None
    sender, receiver = [await harness.create_subscriber(balance="100") for _ in range(2)]
    card = await harness.create_card(receiver["id"])
    key = await harness.create_api_key("payments:write", "balance:read")
    harness.services.ledger.before_submit = require

    async def pay(request_id: str) -> tuple[int, str | None]:
        body = {
            "sender_id": sender["id"],
            "recipient_card_serial": card,
            "amount": "10",
            "pin": PIN,
            "request_id": request_id,
        }
        response = await harness.client.post("/api/v1/wallet/transfer-p2p", json=body, auth=key)
        return response.status_code, response.json().get("code")

    refused = (503, "SERVICE_UNAVAILABLE")
    body = await wait_for_mode(harness, "none")
    assert (body["healthy"], body["wallet_core"]["healthy"]) == (False, False)
    assert [reason["code"] for reason in body["reasons"]] == ["no_synchronous_standby"]
    assert (await harness.client.get("/ready")).status_code == 503
    assert await pay("alone") == refused

    standby.start()
    assert (await wait_for_mode(harness, "asynchronous"))["replication"]["standbys"] == 1
    assert await pay("asynchronous") == refused
    await require_unknown_without_privilege(harness, primary)

    await set_synchronous_standby(primary, "FIRST 1 (standby)")
    body = await wait_for_mode(harness, "synchronous")
    assert (body["healthy"], body["replication"]["synchronous_standbys"]) == (True, 1)
    assert (await harness.client.get("/ready")).status_code == 200
    # The refused payments were not executed, so their idempotency keys are unused.
    assert await pay("alone") == (200, None)

    standby.stop()
    await wait_for_mode(harness, "waiting")
    assert await pay("waiting") == refused  # immediately, instead of waiting in the commit
    await set_synchronous_standby(primary, "")
    await wait_for_mode(harness, "none")
    harness.services.ledger.before_submit = None
    balance = await harness.client.get(f"/api/v1/balance/{sender['id']}", auth=key)
    assert balance.json()["balance"] == "89.85"  # one payment of 10.00, and its fee
