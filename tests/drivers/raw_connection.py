"""A running server, and a raw connection to it."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx2
import uvicorn
import uvloop

from api.builders import run_edge_app
from tapgate.api.app import App
from tapgate.http.protocol import HttpProtocol


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
        return 0 if self._app is None else self._app._concurrency_limit._count

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
            config = uvicorn.Config(
                cast(Any, gateway.app),
                http=HttpProtocol,
                interface="asgi3",
                lifespan="off",
                log_config=None,
                proxy_headers=False,
            )
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
