"""Relay in front of Valkey, which can delay everything that passes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from tools.cluster.configuration import HOST

_MAX_BYTES: Final = 65_536
_Chunks = asyncio.Queue[tuple[float, bytes]]


class SlowRelay:
    """Relays connections to a port. A request and its response together take `delay` longer."""

    def __init__(self) -> None:
        self.delay = 0.0
        self.upstream_port = 0
        self.port = 0

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._relay, HOST, 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream = await asyncio.open_connection(HOST, self.upstream_port)
        except OSError:
            writer.transport.abort()
            return
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._copy(reader, upstream[1]))
                group.create_task(self._copy(upstream[0], writer))
        except* (OSError, EOFError):
            pass
        finally:
            for each in (writer, upstream[1]):
                each.transport.abort()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy until either side closes the connection, then raise EOFError."""
        chunks = _Chunks()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write(chunks, writer))
            while data := await reader.read(_MAX_BYTES):
                due_at = asyncio.get_running_loop().time() + self.delay / 2
                chunks.put_nowait((due_at, data))
            raise EOFError

    async def _write(self, chunks: _Chunks, writer: asyncio.StreamWriter) -> None:
        while True:
            due_at, data = await chunks.get()
            await asyncio.sleep(max(0.0, due_at - asyncio.get_running_loop().time()))
            writer.write(data)
            await writer.drain()
