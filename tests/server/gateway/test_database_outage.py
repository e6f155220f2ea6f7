"""PostgreSQL outages under load: fast 503 responses, no hangs, automatic recovery."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from structlog.testing import capture_logs

from drivers.processes import ADMIN, freeze_processes, list_workers, run_gateway
from tapgate.events.notifications.notification_messages import MessageSender
from tapgate.http.api.services import Services
from tapgate.runtime.store.embedded import EmbeddedPostgres
from tapgate.server import gateway

#: Responses are due within 5 seconds; this bound detects a hang even on a slow machine.
TIMEOUT_SECONDS = 30.0


@pytest.fixture
def server(data_dir: Path) -> Iterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(data_dir)
    server.start()
    yield server
    server.stop()


def stop_server(server: EmbeddedPostgres) -> Callable[[], object]:
    server.stop()
    return server.start


def freeze_server(server: EmbeddedPostgres) -> Callable[[], object]:
    return freeze_processes(server.data_dir / "pgdata")


@pytest.mark.parametrize("start_outage", [stop_server, freeze_server])
async def test_gateway_recovers_from_a_database_outage_under_load(
    public_tmp_path: Path,
    server: EmbeddedPostgres,
    start_outage: Callable[..., Callable[[], object]],
) -> None:
    async with (
        run_gateway(public_tmp_path, server.url, workers=2) as address,
        httpx2.AsyncClient(base_url=address, timeout=TIMEOUT_SECONDS) as client,
    ):
        login = await client.post("/api/v1/admin/login", json=ADMIN)
        client.headers["Authorization"] = f"Bearer {login.json()['token']}"
        async with run_load(client) as statuses:
            await wait_until(lambda: statuses[201] > 20)
            end_outage = start_outage(server)
            try:
                statuses.clear()
                await wait_until(lambda: statuses[503] >= 20)
                # The health is checked regularly, so it may change shortly after the first errors.
                await wait_until_healthy(client, expected=False)
            finally:
                end_outage()
            statuses.clear()
            await wait_until(lambda: statuses[201] > 20)
        assert set(statuses) <= {201, 503}
        await wait_until_healthy(client, expected=True)


@contextlib.asynccontextmanager
async def run_load(client: httpx2.AsyncClient) -> AsyncIterator[Counter[int]]:
    """Register subscribers in twenty concurrent tasks and yield the count per status."""
    statuses: Counter[int] = Counter()
    numbers = iter(range(10_000_000))

    async def register() -> None:
        while True:
            body = {
                "phone_number": f"+2327{next(numbers):07d}",
                "first_name": "Aminata",
                "last_name": "Kamara",
                "pin": "4071",
            }
            response = await client.post("/api/v1/subscribers", json=body)
            # 409 means that the subscriber exists, so it counts as registered.
            statuses[201 if response.status_code == 409 else response.status_code] += 1
            if response.status_code == 503:
                assert response.json()["code"] == "SERVICE_UNAVAILABLE"
                assert response.headers["Retry-After"]
                await asyncio.sleep(0.05)

    tasks = [asyncio.create_task(register()) for _ in range(20)]
    try:
        yield statuses
        for task in tasks:
            assert not task.done(), task.exception()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.05)


async def wait_until_healthy(client: httpx2.AsyncClient, *, expected: bool) -> None:
    async with asyncio.timeout(60):
        while (await client.get("/health")).json()["healthy"] is not expected:
            await asyncio.sleep(0.05)


async def test_killed_worker_is_replaced_and_no_acknowledged_write_is_lost(
    public_tmp_path: Path, database_url: str
) -> None:
    async with (
        run_gateway(public_tmp_path, database_url, workers=2) as address,
        httpx2.AsyncClient(base_url=address, timeout=TIMEOUT_SECONDS) as client,
    ):
        login = await client.post("/api/v1/admin/login", json=ADMIN)
        client.headers["Authorization"] = f"Bearer {login.json()['token']}"
        acknowledged: list[str] = []

        async def register(number: int) -> None:
            body = {
                "phone_number": f"+2327{number:07d}",
                "first_name": "Aminata",
                "last_name": "Kamara",
                "pin": "4071",
            }
            while True:
                with contextlib.suppress(httpx2.TransportError):
                    response = await client.post("/api/v1/subscribers", json=body)
                    if response.status_code in (201, 409):
                        acknowledged.append(body["phone_number"])
                        return
                await asyncio.sleep(0.1)

        tasks = [asyncio.create_task(register(number)) for number in range(60)]
        await wait_until(lambda: len(acknowledged) > 10)
        list_workers(address)[0].kill()
        async with asyncio.timeout(60):
            await asyncio.gather(*tasks)
        assert len(acknowledged) == 60
        # Not `client`: it may keep idle connections to the killed worker.
        async with httpx2.AsyncClient(base_url=address, headers=client.headers) as reader:
            listed = await reader.get("/api/v1/subscribers?limit=1&search=Aminata")
            assert listed.status_code == 200
            for phone in acknowledged:
                page = await reader.get("/api/v1/subscribers", params={"phone_number": phone})
                assert len(page.json()["data"]) == 1


async def test_failed_background_task_is_logged(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(self: MessageSender) -> None:
        raise OSError("no certificates here")

    monkeypatch.setattr(MessageSender, "run", fail)
    with capture_logs() as lines:
        async with gateway.start_background_tasks(services):
            async with asyncio.timeout(30):
                while not any(line["event"] == "background.task_failed" for line in lines):
                    await asyncio.sleep(0.01)
    (line,) = [line for line in lines if line["event"] == "background.task_failed"]
    assert line["log_level"] == "error"
    assert line["failure"]["types"] == ["builtins.OSError"]
    assert "certificates" not in str(line)
