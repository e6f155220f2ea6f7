"""More than a process takes on: the excess is told to come later at once, the rest is done."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from edge.line import Line, Server, connected
from edge.stage import WRITER, Stage, bearer, go_on
from tapgate.service import overload

WAITS = b"POST /api/v1/waits HTTP/1.1\r\nHost: x\r\n\r\n"
HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
MOST = 3
FOR_GOOD = 3600


@pytest.fixture(autouse=True)
def a_small_process(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[None]:
    if "server" in request.fixturenames:
        request.getfixturevalue("server")  # which ends after what waits has been let go
    monkeypatch.setattr(overload, "MAX_CONCURRENT_REQUESTS", MOST)
    go_on.clear()
    yield
    go_on.set()


async def fill(gateway: Stage) -> list[asyncio.Task[int]]:
    async def one() -> int:
        return (await gateway.client.post("/api/v1/waits")).status_code

    tasks = [asyncio.create_task(one()) for _ in range(MOST)]
    while gateway.app._concurrency_limit._count < MOST:
        await asyncio.sleep(0)
    return tasks


@asynccontextmanager
async def filled(server: Server, request: bytes = WAITS) -> AsyncIterator[list[Line]]:
    async with AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(connected(server.port)) for _ in range(MOST)]
        for line in lines:
            await line.send(request)
        async with asyncio.timeout(60):
            while (server.under_way if request == WAITS else server.begun) < MOST:
                await asyncio.sleep(0.01)
        yield lines


async def test_the_excess_is_refused_while_the_rest_completes(gateway: Stage) -> None:
    under_way = await fill(gateway)
    for headers in ({}, bearer(WRITER), {"Authorization": "Bearer nobody"}):
        answer = await gateway.client.get("/api/v1/things", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (503, "SERVICE_UNAVAILABLE")
        assert answer.headers["retry-after"] == str(overload.RETRY_AFTER_SECONDS)
        assert answer.headers["x-request-id"]
        assert "x-ratelimit-limit" not in answer.headers
    assert not any(task.done() for task in under_way)
    go_on.set()
    assert await asyncio.gather(*under_way) == [200] * MOST
    answer = await gateway.client.get("/api/v1/things", headers=bearer(WRITER))
    assert answer.status_code == 200


async def test_refusals_are_counted_and_what_is_about_the_gateway_is_answered(
    gateway: Stage,
) -> None:
    under_way = await fill(gateway)
    assert (await gateway.client.post("/api/v1/waits")).status_code == 503
    for path in ("/health", "/openapi.json", "/docs", "/metrics"):
        assert (await gateway.client.get(path)).status_code == 200, path
    assert (await gateway.client.get("/nowhere")).status_code == 404
    counted = 'tapgate_http_requests_total{endpoint="/api/v1/waits",method="POST",status="503"} 1.0'
    assert counted in (await gateway.client.get("/metrics")).text
    go_on.set()
    assert await asyncio.gather(*under_way) == [200] * MOST


async def test_whatever_became_of_a_request_it_makes_room(gateway: Stage) -> None:
    for path in ("/api/v1/fails", "/api/v1/refuses", "/api/v1/things/x", "/api/v1/fund"):
        for headers in ({}, bearer(WRITER)):
            for _ in range(2 * MOST):
                answer = await gateway.client.post(path, headers=headers, content=b"{")
                assert answer.status_code != 503
    assert gateway.app._concurrency_limit._count == 0


async def test_the_body_is_not_waited_for(server: Server) -> None:
    async with filled(server) as under_way:
        async with connected(server.port) as line:
            await line.send(
                b"POST /api/v1/waits HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
            )
            answer = await line.answer()
            assert (answer.status_code, answer.headers["connection"]) == (503, "close")
        go_on.set()
        for line in under_way:
            assert (await line.answer()).status_code == 200


async def test_who_sends_slowly_takes_nobodys_place(server: Server) -> None:
    """Anybody can begin thousands of bodies and never end them."""
    unfinished = b"POST /api/v1/echoes HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nabc"
    async with filled(server, unfinished) as slow:
        async with connected(server.port) as line:
            await line.send(
                b"POST /api/v1/echoes HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx"
            )
            assert (await line.answer()).status_code == 200
        for line in slow:
            await line.send(b"d")
            assert (await line.answer()).content == b"abcd"


async def test_a_refused_connection_is_closed_when_the_server_stops(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overload, "RETRY_AFTER_SECONDS", FOR_GOOD)
    async with filled(server) as under_way, connected(server.port) as refused:
        await refused.send(WAITS)
        answer = await refused.answer()
        assert (answer.status_code, answer.headers["retry-after"]) == (503, str(FOR_GOOD))
        server.ask_to_stop()
        assert await refused.is_closed()
        go_on.set()
        for line in under_way:
            assert (await line.answer()).status_code == 200


async def test_a_refused_connection_is_answered_after_its_pause(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overload, "RETRY_AFTER_SECONDS", 0.05)
    async with filled(server) as under_way, connected(server.port) as refused:
        await refused.send(WAITS + HEALTH)
        assert (await refused.answer()).status_code == 503
        assert (await refused.answer()).status_code == 200
        go_on.set()
        for line in under_way:
            assert (await line.answer()).status_code == 200
        await refused.send(WAITS)
        assert (await refused.answer()).status_code == 200
