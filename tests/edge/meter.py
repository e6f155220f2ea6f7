"""What a request costs: CPU time of the event loop's thread, and memory at its peak."""

import asyncio
import time
import tracemalloc
from collections.abc import Sequence
from typing import Any

_TRIES = 3


class Pipe:
    """The transport of a connection whose client does not read its response."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.closed = False
        self._is_read = asyncio.Event()
        self._is_read.set()
        self.answered = asyncio.Event()

    async def readable(self) -> None:
        await self._is_read.wait()

    def get_extra_info(self, _name: str) -> Any:
        return "192.0.2.1", 40_000

    def is_closing(self) -> bool:
        return self.closed

    def write(self, data: bytes) -> None:
        if self.status is None:
            self.status = int(data[9:12])
        self.answered.set()

    def write_eof(self) -> None: ...

    def pause_reading(self) -> None:
        self._is_read.clear()

    def resume_reading(self) -> None:
        self._is_read.set()

    def close(self) -> None:
        self.closed = True
        self.answered.set()
        self._is_read.set()

    abort = close


class Connections:
    def __init__(self) -> None:
        self.connections: set[Any] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.default_headers: list[tuple[bytes, bytes]] = []


class Config:
    def __init__(self, app: Any) -> None:
        self.loaded_app = app


async def send(protocol: Any, app: Any, reads: Sequence[bytes]) -> int | None:
    """Send until the response; return its status, or None where none was given."""
    pipe = Pipe()
    wire = protocol(Config(app), Connections(), {})
    wire.connection_made(pipe)
    for read in reads:
        if pipe.answered.is_set():
            break
        wire.data_received(read)
        await asyncio.sleep(0)
        readable = asyncio.ensure_future(pipe.readable())
        answered = asyncio.ensure_future(pipe.answered.wait())
        await asyncio.wait((readable, answered), return_when=asyncio.FIRST_COMPLETED)
        readable.cancel()
        answered.cancel()
    if not pipe.answered.is_set():
        # Without an end: the rest of the time is the deadline's.
        for _ in range(20):
            await asyncio.sleep(0)
    wire.connection_lost(None)
    await asyncio.sleep(0)
    return pipe.status


async def peak_memory(protocol: Any, app: Any, reads: Sequence[bytes]) -> int:
    """Return how many bytes more than before were allocated at one time."""
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    await send(protocol, app, reads)
    _, peak = tracemalloc.get_traced_memory()
    return peak - before


async def cpu_seconds(protocol: Any, app: Any, reads: Sequence[bytes], enough: float) -> float:
    """Return the least CPU time of a few tries; one try will do where it takes less than enough."""
    least = float("inf")
    for _ in range(_TRIES):
        started = time.thread_time()
        await send(protocol, app, reads)
        least = min(least, time.thread_time() - started)
        if least < enough:
            break
    return least


def calibration() -> float:
    """Return the CPU time of a fixed piece of work of the interpreter: about ten milliseconds."""
    tries = []
    for _ in range(5):
        started = time.thread_time()
        total, words = 0, {}
        for number in range(40_000):
            words[number % 1000] = str(number)
            total += len(words[number % 1000])
        tries.append(time.thread_time() - started)
    return min(tries)
