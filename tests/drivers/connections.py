"""Connections to the HTTP server: raw sockets, and a simulated transport with its own clock."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx2
import uvicorn
import uvloop

from builders.http_apps import run_edge_app
from tapgate.http.api.app import App
from tapgate.http.http_messages import Request, Response
from tapgate.http.protocol import HttpProtocol


def build_server_config(app: App) -> uvicorn.Config:
    return uvicorn.Config(
        cast(Any, app),
        http=HttpProtocol,
        interface="asgi3",
        ws="none",
        lifespan="off",
        log_config=None,
        proxy_headers=False,
    )


class EdgeServer:
    """The application behind uvicorn and HttpProtocol, on uvloop as in production."""

    def __init__(self, folder: Path) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._loop = uvloop.new_event_loop()
        self._stopping = asyncio.Event()
        self._server: uvicorn.Server | None = None
        self._app: App | None = None
        self._thread = threading.Thread(target=self._run, args=(folder,))
        self._thread.start()
        self.port: int = self._listener.getsockname()[1]

    @property
    def connection_count(self) -> int:
        """Return the number of open connections."""
        return 0 if self._server is None else len(self._server.server_state.connections)

    @property
    def active_request_count(self) -> int:
        """Return the number of requests in progress."""
        return 0 if self._app is None else self._app.concurrency_limit.count

    @property
    def started_request_count(self) -> int:
        """Return the number of requests in progress, including those with an incomplete body."""
        return 0 if self._server is None else len(self._server.server_state.tasks)

    def request_stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)

    def stop(self) -> None:
        self.request_stop()
        self._thread.join()
        self._loop.close()
        self._listener.close()

    def _run(self, folder: Path) -> None:
        self._loop.run_until_complete(self._serve(folder))

    async def _serve(self, folder: Path) -> None:
        async with run_edge_app(folder) as gateway:
            self._app = gateway.app
            config = build_server_config(gateway.app)
            server = self._server = uvicorn.Server(config)
            task = asyncio.create_task(server.serve(sockets=[self._listener]))
            await self._stopping.wait()
            server.should_exit = True
            await task


class RawConnection:
    """A connection that sends and receives raw bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def read_response(self) -> httpx2.Response:
        async with asyncio.timeout(60):
            head = await self._reader.readuntil(b"\r\n\r\n")
            status_line, *lines = head.decode("latin-1").split("\r\n")
            headers = dict(header.split(": ", 1) for header in lines if header)
            body = await self._reader.readexactly(int(headers.get("content-length", 0)))
        return httpx2.Response(int(status_line.split()[1]), headers=headers, content=body)

    async def is_closed(self) -> bool:
        async with asyncio.timeout(60):
            return await self._reader.read(1) == b""

    def send_eof(self) -> None:
        """Half-close the connection: the client sends nothing more but can still receive."""
        self._writer.write_eof()

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def open_connection(port: int, window: int | None = None) -> AsyncIterator[RawConnection]:
    """Open a connection; `window` limits the client's receive buffers, in bytes."""
    sock = socket.socket()
    if window is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    conn = RawConnection(*await asyncio.open_connection(sock=sock, limit=window or 2**16))
    try:
        yield conn
    finally:
        conn.close()


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

    def set_write_buffer_limits(self, high: int) -> None: ...

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
    """Run 100 event loop iterations, so that all ready tasks make progress."""
    for _ in range(100):
        await asyncio.sleep(0)
