"""Load client: counts responses, and retries rejected requests if configured."""

import asyncio
import sys
from array import array
from pathlib import Path
from typing import Any

import msgspec

from cases import each

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
    output, _ = await client.communicate(len(encoded).to_bytes(8) + encoded + b"go\n")
    assert client.returncode == 0
    return msgspec.msgpack.decode(output.removeprefix(b"ready\n"))


async def run_against_busy_server(
    requests: int, rejections: int, *, pause: float = 0, **options: float | bool
) -> Any:
    """Run the load client against a server that rejects each request `rejections` times.

    The server waits for `pause` seconds before each response.
    """
    seen: dict[bytes, int] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            seen[line] = seen.get(line, 0) + 1
            await asyncio.sleep(pause)
            writer.write(_OK_RESPONSE if seen[line] > rejections else _UNAVAILABLE_RESPONSE)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        lines = [b"%d\n" % number for number in range(requests)]
        plan = {"port": port, "connections": 2, "seconds": 60.0, "requests": lines, **options}
        return await run_load(plan)


@each("lead_in", [0.0, 30.0])
async def test_retrying_client_gets_its_requests_accepted(lead_in: float) -> None:
    result = await run_against_busy_server(50, 3, insists=True, lead_in=lead_in)
    assert result["sent"] == 50
    # The run ends when no unsent request is left, so the last request of one of the two
    # connections may still be without a 200.
    assert result["statuses"]["200"] in (49, 50)
    assert result["statuses"]["503"] in range(3 * 49 + 1, 3 * 50 + 1)
    assert len(array("d", result["first_refusals"])) == 50
    assert len(array("d", result["latencies"])) == result["statuses"]["200"]
    assert result["in_time"] > 0
    assert result["seconds"] > 0


async def test_client_without_retries_continues_with_the_next_request() -> None:
    result = await run_against_busy_server(10, 1)
    assert result["statuses"] == {"503": 10}
    assert result["in_time"] == 10
    assert result["first_refusals"] == b""


async def test_run_continues_after_its_time_until_there_is_a_response_to_count() -> None:
    """Otherwise a short machine stall would result in zero throughput."""
    result = await run_against_busy_server(10, 0, seconds=0.01, pause=0.2)
    assert result["statuses"] == {"200": 2}
    assert result["in_time"] == 1
