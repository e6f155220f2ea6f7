"""Overload: excess requests get 503 immediately, and admitted requests complete."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from builders.http_apps import WRITER, EdgeApp, build_bearer_headers, release_waits
from drivers.connections import EdgeServer, RawConnection, open_connection
from tapgate.http import overload

WAIT_REQUEST = b"POST /api/v1/waits HTTP/1.1\r\nHost: x\r\n\r\n"
HEALTH_REQUEST = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
MAX_CONCURRENT = 3
NEVER_SECONDS = 3600


@pytest.fixture(autouse=True)
def _lower_concurrency_limit(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[None]:
    if "server" in request.fixturenames:
        request.getfixturevalue(
            "server"
        )  # set up first, so that it stops after the waits are released
    monkeypatch.setattr(overload, "MAX_CONCURRENT_REQUESTS", MAX_CONCURRENT)
    release_waits.clear()
    yield
    release_waits.set()


async def fill_slots(gateway: EdgeApp) -> list[asyncio.Task[int]]:
    async def send_request() -> int:
        return (await gateway.client.post("/api/v1/waits")).status_code

    tasks = [asyncio.create_task(send_request()) for _ in range(MAX_CONCURRENT)]
    while gateway.app.concurrency_limit.count < MAX_CONCURRENT:
        await asyncio.sleep(0)
    return tasks


@asynccontextmanager
async def fill_slots_by_connection(
    server: EdgeServer, request: bytes = WAIT_REQUEST
) -> AsyncIterator[list[RawConnection]]:
    async with AsyncExitStack() as stack:
        connections = [
            await stack.enter_async_context(open_connection(server.port))
            for _ in range(MAX_CONCURRENT)
        ]
        for conn in connections:
            await conn.send(request)
        async with asyncio.timeout(60):
            while (
                server.active_request_count
                if request == WAIT_REQUEST
                else server.started_request_count
            ) < MAX_CONCURRENT:
                await asyncio.sleep(0.01)
        yield connections


async def test_excess_requests_get_503_while_admitted_requests_complete(gateway: EdgeApp) -> None:
    in_progress = await fill_slots(gateway)
    for headers in ({}, build_bearer_headers(WRITER), {"Authorization": "Bearer nobody"}):
        response = await gateway.client.get("/api/v1/things", headers=headers)
        assert (response.status_code, response.json()["code"]) == (503, "SERVICE_UNAVAILABLE")
        assert response.headers["retry-after"] == str(overload.RETRY_AFTER_SECONDS)
        assert response.headers["x-request-id"]
        assert "x-ratelimit-limit" not in response.headers
    assert not any(task.done() for task in in_progress)
    release_waits.set()
    assert await asyncio.gather(*in_progress) == [200] * MAX_CONCURRENT
    response = await gateway.client.get("/api/v1/things", headers=build_bearer_headers(WRITER))
    assert response.status_code == 200


async def test_rejected_requests_are_counted_and_system_endpoints_stay_available(
    gateway: EdgeApp,
) -> None:
    in_progress = await fill_slots(gateway)
    assert (await gateway.client.post("/api/v1/waits")).status_code == 503
    for path in ("/live", "/ready", "/health", "/openapi.json", "/metrics"):
        assert (await gateway.client.get(path)).status_code == 200, path
    assert (await gateway.client.get("/nowhere")).status_code == 404
    expected_line = (
        'tapgate_http_requests_total{endpoint="/api/v1/waits",method="POST",status="503"} 1.0'
    )
    assert expected_line in (await gateway.client.get("/metrics")).text
    release_waits.set()
    assert await asyncio.gather(*in_progress) == [200] * MAX_CONCURRENT


async def test_every_outcome_releases_the_slot(gateway: EdgeApp) -> None:
    for path in ("/api/v1/fails", "/api/v1/refuses", "/api/v1/things/x", "/api/v1/fund"):
        for headers in ({}, build_bearer_headers(WRITER)):
            for _ in range(2 * MAX_CONCURRENT):
                response = await gateway.client.post(path, headers=headers, content=b"{")
                assert response.status_code != 503
    assert gateway.app.concurrency_limit.count == 0


async def test_overload_response_does_not_wait_for_the_body(server: EdgeServer) -> None:
    async with fill_slots_by_connection(server) as in_progress:
        async with open_connection(server.port) as conn:
            await conn.send(
                b"POST /api/v1/waits HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
            )
            response = await conn.read_response()
            assert (response.status_code, response.headers["connection"]) == (503, "close")
        release_waits.set()
        for conn in in_progress:
            assert (await conn.read_response()).status_code == 200


async def test_slow_sender_occupies_no_slot(server: EdgeServer) -> None:
    """Any client can start thousands of bodies and never finish them."""
    unfinished = b"POST /api/v1/echoes HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nabc"
    async with fill_slots_by_connection(server, unfinished) as slow:
        async with open_connection(server.port) as conn:
            await conn.send(
                b"POST /api/v1/echoes HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx"
            )
            assert (await conn.read_response()).status_code == 200
        for conn in slow:
            await conn.send(b"d")
            assert (await conn.read_response()).content == b"abcd"


async def test_rejected_connection_is_closed_on_shutdown(
    server: EdgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overload, "RETRY_AFTER_SECONDS", NEVER_SECONDS)
    async with (
        fill_slots_by_connection(server) as in_progress,
        open_connection(server.port) as rejected,
    ):
        await rejected.send(WAIT_REQUEST)
        response = await rejected.read_response()
        assert (response.status_code, response.headers["retry-after"]) == (503, str(NEVER_SECONDS))
        server.request_stop()
        assert await rejected.is_closed()
        release_waits.set()
        for conn in in_progress:
            assert (await conn.read_response()).status_code == 200


async def test_rejected_connection_is_served_after_its_pause(
    server: EdgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overload, "RETRY_AFTER_SECONDS", 0.05)
    async with (
        fill_slots_by_connection(server) as in_progress,
        open_connection(server.port) as rejected,
    ):
        await rejected.send(WAIT_REQUEST + HEALTH_REQUEST)
        assert (await rejected.read_response()).status_code == 503
        assert (await rejected.read_response()).status_code == 200
        release_waits.set()
        for conn in in_progress:
            assert (await conn.read_response()).status_code == 200
        await rejected.send(WAIT_REQUEST)
        assert (await rejected.read_response()).status_code == 200
