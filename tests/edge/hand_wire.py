"""A wire whose time, client and application are moved by hand: what happens when is exact."""

import asyncio
from collections.abc import Callable
from typing import Any

from tapgate.edge.http_protocol import HttpProtocol
from tapgate.service.http import Request, Response

PAUSE = 1.0


class Timer:
    def __init__(self, at: float, callback: Callable[[], None]) -> None:
        self.at = at
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True
        self.callback = lambda: None  # as a real one, it forgets whom it would have called


class HandLoop:
    """Time passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self._timers: list[Timer] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        self._timers.append(Timer(self.now + delay, callback))
        return self._timers[-1]

    def create_task(self, work: Any) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(work)

    def call_soon(self, callback: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(callback)

    async def wait(self, seconds: float) -> None:
        until = self.now + seconds
        await settled()
        while due := [timer for timer in self._timers if timer.at <= until and not timer.cancelled]:
            first = min(due, key=lambda timer: timer.at)
            self._timers.remove(first)
            self.now = first.at
            first.callback()
            await settled()
        self.now = until

    @property
    def timers(self) -> int:
        return sum(not timer.cancelled for timer in self._timers)


class Client:
    """Also the way to the wire: what is sent while nobody reads stays on it."""

    def __init__(self, loop: HandLoop) -> None:
        self._loop = loop
        self._on_its_way = b""
        self._reading = True
        self.answers: list[tuple[float, int]] = []  # when, and with which status
        self.closed = False
        self.wire: HttpProtocol

    def send(self, data: bytes) -> None:
        self._on_its_way += data
        self._deliver()

    def _deliver(self) -> None:
        if self._reading and self._on_its_way and not self.closed:
            data, self._on_its_way = self._on_its_way, b""
            self.wire.data_received(data)

    # What the wire sees of it

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, _name: str) -> Any:
        return None

    def write(self, data: bytes) -> None:
        self.answers.append((self._loop.now, int(data[9:12])))

    def write_eof(self) -> None: ...

    def pause_reading(self) -> None:
        assert self._reading
        self._reading = False

    def resume_reading(self) -> None:
        assert not self._reading
        assert not self.closed
        self._reading = True
        asyncio.get_running_loop().call_soon(self._deliver)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.wire.connection_lost(None)

    abort = close


class Connections:
    def __init__(self) -> None:
        self.connections: set[Any] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.default_headers: list[tuple[bytes, bytes]] = []


class Config:
    """An application that says what the path says."""

    def __init__(self) -> None:
        self.loaded_app = self

    async def respond(self, request: Request) -> Response:
        status = int(request.path[1:])
        return Response(status, b"content-length: 0\r\n", b"", PAUSE if status == 503 else 0.0)


def request(status: int) -> bytes:
    return b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % status


def connect(loop: HandLoop) -> Client:
    client = Client(loop)
    hand: Any = loop
    transport: Any = client
    client.wire = HttpProtocol(Config(), Connections(), {}, hand)
    client.wire.connection_made(transport)
    return client


async def settled() -> None:
    """All that can happen at this moment has happened."""
    for _ in range(100):
        await asyncio.sleep(0)
