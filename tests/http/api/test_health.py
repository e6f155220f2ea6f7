"""Health endpoints: cached checks, their reasons, and requests that are never rejected."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from builders.http_apps import EdgeApp
from tapgate import VERSION
from tapgate.runtime import health
from tapgate.runtime.store.migration_plan import MIGRATIONS_DIR
from tapgate_client.schemas.health import Replication


@pytest.fixture
def uncached(gateway: EdgeApp, monkeypatch: pytest.MonkeyPatch) -> EdgeApp:
    """The gateway without a cache of check results."""
    monkeypatch.setattr(gateway.services.health.status, "max_age", 0)
    return gateway


async def get_reasons(gateway: EdgeApp) -> list[str]:
    response = await gateway.client.get("/ready")
    body: dict[str, Any] = response.json()
    reasons = [reason["code"] for reason in body["reasons"]]
    assert (response.status_code, body["ready"]) == ((503, False) if reasons else (200, True))
    return reasons


async def test_version_names_the_release_and_its_schema(uncached: EdgeApp) -> None:
    response = await uncached.client.get("/version")
    assert response.json() == {
        "service": "tapgate",
        "version": VERSION,
        "newest_migration": max(file.name for file in MIGRATIONS_DIR.iterdir())[:4],
    }


async def test_health_reflects_the_database(uncached: EdgeApp) -> None:
    response = await uncached.client.get("/health")
    assert response.status_code == 200
    assert response.json() == {
        "service": "tapgate",
        "version": VERSION,
        "healthy": True,
        "wallet_core": {"healthy": True, "version": VERSION},
        "reasons": [],
        "replication": {"mode": "none", "standbys": 0, "synchronous_standbys": None},
        "warnings": [],
    }
    uncached.ledger.is_healthy = False
    response = await uncached.client.get("/health")
    assert response.status_code == 503
    assert response.json()["healthy"] is response.json()["wallet_core"]["healthy"] is False


async def test_process_is_live_without_a_database_but_not_ready(uncached: EdgeApp) -> None:
    assert await get_reasons(uncached) == []
    uncached.ledger.is_healthy = False
    assert await get_reasons(uncached) == ["database_unavailable"]
    response = await uncached.client.get("/live")
    assert (response.status_code, response.json()) == (200, {"live": True})


def make_read_only(gateway: EdgeApp) -> None:
    status = msgspec.structs.replace(gateway.ledger.server_status, is_read_only=True)
    gateway.ledger.server_status = status


def set_clock_ahead(gateway: EdgeApp) -> None:
    status = msgspec.structs.replace(gateway.ledger.server_status, clock_offset=360.0)
    gateway.ledger.server_status = status


def set_clock_behind(gateway: EdgeApp) -> None:
    status = msgspec.structs.replace(gateway.ledger.server_status, clock_offset=-61.0)
    gateway.ledger.server_status = status


def remove_data_folder(gateway: EdgeApp) -> None:
    gateway.services.health.folder /= "missing"


@pytest.mark.parametrize(
    ("break_node", "reason", "can_write"),
    [
        (make_read_only, "database_read_only", False),
        (set_clock_ahead, "clock_offset", True),
        (set_clock_behind, "clock_offset", True),
        (remove_data_folder, "disk_full", True),
    ],
)
async def test_broken_node_is_neither_ready_nor_healthy(
    uncached: EdgeApp, break_node: Callable[[EdgeApp], None], reason: str, can_write: bool
) -> None:
    assert await get_reasons(uncached) == []
    break_node(uncached)
    assert await get_reasons(uncached) == [reason]
    response = await uncached.client.get("/health")
    body = response.json()
    assert (response.status_code, body["healthy"]) == (503, False)
    assert [problem["code"] for problem in body["reasons"]] == [reason]
    assert body["wallet_core"]["healthy"] is can_write


async def test_node_without_free_disk_space_is_not_ready(
    uncached: EdgeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "MIN_FREE_BYTES", 1 << 62)
    assert await get_reasons(uncached) == ["disk_full"]


async def test_draining_node_is_not_ready_but_healthy(uncached: EdgeApp) -> None:
    uncached.services.health.is_draining = True
    assert await get_reasons(uncached) == ["draining"]
    response = await uncached.client.get("/health")
    assert (response.status_code, response.json()["healthy"]) == (200, True)


async def test_many_checks_query_the_database_once(
    gateway: EdgeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway.services.health.status, "max_age", 60)
    paths = ["/ready", "/health"] * 100
    responses = await asyncio.gather(*(gateway.client.get(path) for path in paths))
    assert {response.status_code for response in responses} == {200}
    assert gateway.ledger.probes == 1


async def test_canceled_check_does_not_cancel_the_check_of_others(
    gateway: EdgeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = asyncio.Event()
    probe = gateway.ledger.get_server_status

    async def wait_and_probe() -> object:
        await release.wait()
        return await probe()

    monkeypatch.setattr(gateway.services.health, "probe", wait_and_probe)
    monitor = gateway.services.health
    first, second = (asyncio.create_task(monitor.get_status()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    release.set()
    assert (await second).is_healthy
    assert gateway.ledger.probes == 1
    assert first.cancelled()


async def test_health_reports_replication(uncached: EdgeApp) -> None:
    uncached.ledger.server_status = msgspec.structs.replace(
        uncached.ledger.server_status,
        replication=Replication(mode="synchronous", standbys=2, synchronous_standbys=1),
    )
    assert (await uncached.client.get("/health")).json()["replication"] == {
        "mode": "synchronous",
        "standbys": 2,
        "synchronous_standbys": 1,
    }
