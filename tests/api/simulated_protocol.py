"""HttpProtocol with simulated time, client and application, so that timing is exact."""

import asyncio
from collections.abc import Callable
from typing import Any

from tapgate.api.app import App
from tapgate.http.messages import Request, Response
from tapgate.http.protocol import HttpProtocol

RETRY_AFTER_SECONDS = 1.0


class FakeTimer:
    def __init__(self, at: float, callback: Callable[[], None]) -> None:
        self.due_at = at
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True
        self.callback = lambda: None  # like a real timer, drop the reference to the callback


class SimulatedLoop:
    """An event loop whose time advances only on request."""

    def __init__(self) -> None:
        self.now = 0.0
        self._timers: list[FakeTimer] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], None]) -> FakeTimer:
        self._timers.append(FakeTimer(self.now + delay, callback))
        return self._timers[-1]

    def create_task(self, work: Any) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(work)

    def call_soon(self, callback: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(callback)

    async def advance(self, seconds: float) -> None:
        end = self.now + seconds
        await drain_event_loop()
        while due := [
            timer for timer in self._timers if timer.due_at <= end and not timer.cancelled
        ]:
            first = min(due, key=lambda timer: timer.due_at)
            self._timers.remove(first)
            self.now = first.due_at
            first.callback()
            await drain_event_loop()
        self.now = end

    @property
    def active_timer_count(self) -> int:
        return sum(not timer.cancelled for timer in self._timers)


class SimulatedClient:
    """A client and its transport.

    Data sent while the protocol has paused reading stays in flight.
    """

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self._in_flight = b""
        self._reading = True
        self.responses: list[tuple[float, int]] = []  # time and status
        self.closed = False
        self.protocol: HttpProtocol

    def send(self, data: bytes) -> None:
        self._in_flight += data
        self._deliver()

    def _deliver(self) -> None:
        if self._reading and self._in_flight and not self.closed:
            data, self._in_flight = self._in_flight, b""
            self.protocol.data_received(data)

    # Transport interface used by the protocol

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, _name: str) -> Any:
        return None

    def write(self, data: bytes) -> None:
        self.responses.append((self._loop.now, int(data[9:12])))

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
            self.protocol.connection_lost(None)

    abort = close


class FakeServerState:
    def __init__(self) -> None:
        self.connections: set[Any] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.default_headers: list[tuple[bytes, bytes]] = []


class FakeConfig:
    """Server configuration whose application responds with the status in the path."""

    render_error = staticmethod(App.render_error)

    def __init__(self) -> None:
        self.loaded_app = self

    async def respond(self, request: Request) -> Response:
        status = int(request.path[1:])
        return Response(
            status, b"content-length: 0\r\n", b"", RETRY_AFTER_SECONDS if status == 503 else 0.0
        )


def build_request(status: int) -> bytes:
    return b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % status


def connect(loop: SimulatedLoop) -> SimulatedClient:
    client = SimulatedClient(loop)
    event_loop: Any = loop
    transport: Any = client
    client.protocol = HttpProtocol(FakeConfig(), FakeServerState(), {}, event_loop)
    client.protocol.connection_made(transport)
    return client


async def drain_event_loop() -> None:
    """Run 100 iterations of the event loop, so that all ready tasks make progress."""
    for _ in range(100):
        await asyncio.sleep(0)
