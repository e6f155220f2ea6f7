"""Cost of a request: CPU time of the event loop's thread, and peak memory."""

import asyncio
import time
import tracemalloc
from collections.abc import Sequence
from typing import Any

_ATTEMPTS = 3


class FakeTransport:
    """The transport of a connection whose client does not read its response."""

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


async def send_request(protocol: Any, app: Any, reads: Sequence[bytes]) -> int | None:
    """Send until the response and return its status, or None if there was none."""
    transport = FakeTransport()
    connection = protocol(FakeConfig(app), FakeServerState(), {})
    connection.connection_made(transport)
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
        # The request never ends, so only a timeout would close the connection.
        for _ in range(20):
            await asyncio.sleep(0)
    connection.connection_lost(None)
    await asyncio.sleep(0)
    return transport.status


async def measure_peak_memory(protocol: Any, app: Any, reads: Sequence[bytes]) -> int:
    """Return the peak of additionally allocated bytes."""
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    await send_request(protocol, app, reads)
    _, peak = tracemalloc.get_traced_memory()
    return peak - before


async def measure_cpu_seconds(
    protocol: Any, app: Any, reads: Sequence[bytes], threshold: float
) -> float:
    """Return the lowest CPU time of a few attempts.

    Stops after the first attempt that takes less than `threshold`.
    """
    minimum = float("inf")
    for _ in range(_ATTEMPTS):
        started = time.thread_time()
        await send_request(protocol, app, reads)
        minimum = min(minimum, time.thread_time() - started)
        if minimum < threshold:
            break
    return minimum


def calibrate_cpu() -> float:
    """Return the CPU time of a fixed amount of interpreter work: about ten milliseconds."""
    durations = []
    for _ in range(5):
        started = time.thread_time()
        total, texts = 0, {}
        for number in range(40_000):
            texts[number % 1000] = str(number)
            total += len(texts[number % 1000])
        durations.append(time.thread_time() - started)
    return min(durations)
