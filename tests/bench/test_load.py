"""The load client insists where it should, and counts what it was told."""

import asyncio
import sys
from array import array
from pathlib import Path
from typing import Any

import msgspec
import pytest

ROOT = Path(__file__).parents[2]

_UNAVAILABLE_RESPONSE = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 1\r\n\r\n"
)
_OK_RESPONSE = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


async def run_load(plan: dict[str, Any]) -> Any:
    client = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.payments.load_client"),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    encoded = msgspec.msgpack.encode(plan)
    said, _ = await client.communicate(len(encoded).to_bytes(8) + encoded + b"go\n")
    assert client.returncode == 0
    return msgspec.msgpack.decode(said.removeprefix(b"ready\n"))


async def run_against_busy_server(
    requests: int, refusals: int, *, pause: float = 0, **how: float | bool
) -> Any:
    """By a server that refuses each request that often before it takes it, after a pause."""
    seen: dict[bytes, int] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            seen[line] = seen.get(line, 0) + 1
            await asyncio.sleep(pause)
            writer.write(_OK_RESPONSE if seen[line] > refusals else _UNAVAILABLE_RESPONSE)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        lines = [b"%d\n" % number for number in range(requests)]
        plan = {"port": port, "connections": 2, "seconds": 60.0, "requests": lines, **how}
        return await run_load(plan)


@pytest.mark.parametrize("lead_in", [0.0, 30.0])
async def test_who_insists_gets_its_requests_through(lead_in: float) -> None:
    tally = await run_against_busy_server(50, 3, insists=True, lead_in=lead_in)
    assert tally["sent"] == 50
    # It is over when no request is left: the other connection's last one may be given up.
    assert tally["statuses"]["200"] in (49, 50)
    assert tally["statuses"]["503"] in range(3 * 49 + 1, 3 * 50 + 1)
    assert len(array("d", tally["first_refusals"])) == 50
    assert len(array("d", tally["latencies"])) == tally["statuses"]["200"]
    assert tally["in_time"] > 0
    assert tally["seconds"] > 0


async def test_who_does_not_insist_goes_on_with_the_next() -> None:
    tally = await run_against_busy_server(10, 1)
    assert tally["statuses"] == {"503": 10}
    assert tally["in_time"] == 10
    assert tally["first_refusals"] == b""


async def test_it_goes_on_until_there_is_something_to_count() -> None:
    """Else a machine that stands still for a moment has a speed of nothing at all."""
    tally = await run_against_busy_server(10, 0, seconds=0.01, pause=0.2)
    assert tally["statuses"] == {"200": 2}
    assert tally["in_time"] == 1
