"""Cost of a request: CPU time of the event loop's thread, and peak memory."""

import asyncio
import time
import tracemalloc
from collections.abc import Sequence
from typing import Any, cast

from tapgate.http.protocol import HttpProtocol

_ATTEMPTS = 3


class FakeTransport:
    """Transport that records the status of the first response."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.closed = False
        self._reading = asyncio.Event()
        self._reading.set()
        self.responded = asyncio.Event()

    async def wait_until_reading(self) -> None:
        await self._reading.wait()

    def get_extra_info(self, _name: str) -> Any:
        return "192.0.2.1", 40_000

    def is_closing(self) -> bool:
        return self.closed

    def write(self, data: bytes) -> None:
        if self.status is None:
            self.status = int(data[9:12])
        self.responded.set()

    def write_eof(self) -> None: ...

    def pause_reading(self) -> None:
        self._reading.clear()

    def resume_reading(self) -> None:
        self._reading.set()

    def close(self) -> None:
        self.closed = True
        self.responded.set()
        self._reading.set()

    abort = close


class FakeServerState:
    def __init__(self) -> None:
        self.connections: set[Any] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.default_headers: list[tuple[bytes, bytes]] = []


class FakeConfig:
    def __init__(self, app: Any) -> None:
        self.loaded_app = app


async def send_request(app: Any, reads: Sequence[bytes]) -> int | None:
    """Send data until a response starts or the data ends; return the status, or None."""
    transport = FakeTransport()
    connection = HttpProtocol(FakeConfig(app), FakeServerState(), {})
    connection.connection_made(cast(Any, transport))
    for read in reads:
        if transport.responded.is_set():
            break
        connection.data_received(read)
        await asyncio.sleep(0)
        readable = asyncio.ensure_future(transport.wait_until_reading())
        responded = asyncio.ensure_future(transport.responded.wait())
        await asyncio.wait((readable, responded), return_when=asyncio.FIRST_COMPLETED)
        readable.cancel()
        responded.cancel()
    if not transport.responded.is_set():
        # The response may still be pending. A request that never ends gets none.
        for _ in range(20):
            await asyncio.sleep(0)
    connection.connection_lost(None)
    await asyncio.sleep(0)
    return transport.status


async def measure_peak_memory(app: Any, reads: Sequence[bytes]) -> int:
    """Return the peak number of bytes allocated while the request is processed."""
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    await send_request(app, reads)
    _, peak = tracemalloc.get_traced_memory()
    return peak - before


async def measure_cpu_seconds(app: Any, reads: Sequence[bytes], target: float) -> float:
    """Return the lowest CPU time of at most `_ATTEMPTS` attempts.

    Stops after the first attempt that takes less than `target` seconds.
    """
    lowest = float("inf")
    for _ in range(_ATTEMPTS):
        started = time.thread_time()
        await send_request(app, reads)
        lowest = min(lowest, time.thread_time() - started)
        if lowest < target:
            break
    return lowest


def calibrate_cpu() -> float:
    """Return the lowest of five CPU times of fixed interpreter work, about ten milliseconds."""
    attempts = []
    for _ in range(5):
        started = time.thread_time()
        total, strings = 0, {}
        for number in range(40_000):
            strings[number % 1000] = str(number)
            total += len(strings[number % 1000])
        attempts.append(time.thread_time() - started)
    return min(attempts)
