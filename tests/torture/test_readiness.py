"""The watch of `/ready` measures when gateways notice a fault and its end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from tools.cluster.configuration import HOST
from torture.cluster.readiness import ReadinessWatch
from torture.round_stats import ReadinessStats

pytestmark = pytest.mark.failures

READY = b"200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
BODY = b'{"reasons": [{"code": "database_disk_full"}]}'
NOT_READY = (
    b"503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
    % (len(BODY), BODY)
)


@contextlib.asynccontextmanager
async def run_gateway(respond: Callable[[], bytes]) -> AsyncIterator[int]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 " + respond())
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, HOST, 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_watch_measures_the_gateway_that_notices_and_recovers() -> None:
    responses = {"one": READY, "two": READY}
    async with (
        run_gateway(lambda: responses["one"]) as one,
        run_gateway(lambda: responses["two"]) as two,
    ):
        watch = ReadinessWatch({"one": one, "two": two})
        async with watch.run():
            await asyncio.sleep(0.3)
            watch.start_fault()
            await asyncio.sleep(0.5)
            responses["one"] = NOT_READY
            await asyncio.sleep(0.5)
            watch.end_fault()
            responses["one"] = READY
            await asyncio.sleep(0.5)
        stats = watch.measure()
    assert stats.gateways == 2
    assert stats.reasons == ["database_disk_full"]
    assert list(stats.seconds_until_not_ready) == ["one"]
    assert 0.4 < stats.seconds_until_not_ready["one"] < 5
    assert 0 <= stats.seconds_until_ready["one"] < 5


async def test_gateway_without_a_response_is_not_ready() -> None:
    watch = ReadinessWatch({"one": 1})
    watch.start_fault()
    async with watch.run():
        await asyncio.sleep(0.3)
    assert watch.measure().reasons == ["no response"]


def test_description_names_the_gateways_that_noticed() -> None:
    assert str(ReadinessStats(gateways=3)) == "/ready unchanged"
    stats = ReadinessStats(
        gateways=3,
        seconds_until_not_ready={"one": 1.24, "two": 0.5},
        seconds_until_ready={"one": 2.0, "two": -0.1},
        reasons=["database_unavailable"],
    )
    expected = "/ready 503 on 2 of 3 after 1.2 s, 200 again 2.0 s after the end"
    assert str(stats) == f"{expected} (database_unavailable)"
