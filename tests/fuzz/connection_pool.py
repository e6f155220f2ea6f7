"""Raw connections that send the exact bytes, without normalization by an HTTP client."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx2

from drivers.connections import RawConnection, open_connection


def encode_head(request: httpx2.Request) -> bytes:
    lines = [b"%b %b HTTP/1.1" % (request.method.encode(), request.url.raw_path)]
    lines += [b"%b: %b" % (name, value) for name, value in request.headers.raw]
    return b"\r\n".join([*lines, b"", b""])


class ConnectionPool:
    """Connections to one service; closed connections are reopened."""

    def __init__(self, address: str) -> None:
        self.address = address
        port = urlsplit(address).port
        assert port is not None
        self._port = port
        self._free: list[tuple[contextlib.AsyncExitStack, RawConnection]] = []

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        return await self.send_bytes(encode_head(request) + request.content)

    async def send_bytes(self, data: bytes) -> httpx2.Response:
        """Send raw bytes, retrying once on a new connection if an idle one was closed."""
        if self._free:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                return await self._send_on(self._free.pop(), data)
        return await self._send_on(await self._acquire(), data)

    async def _acquire(self) -> tuple[contextlib.AsyncExitStack, RawConnection]:
        stack = contextlib.AsyncExitStack()
        return stack, await stack.enter_async_context(open_connection(self._port))

    async def _send_on(
        self, opened: tuple[contextlib.AsyncExitStack, RawConnection], data: bytes
    ) -> httpx2.Response:
        stack, connection = opened
        try:
            await connection.send(data)
            response = await connection.read_response()
        except BaseException:
            await stack.aclose()
            raise
        if response.headers.get("connection") == "close":
            await stack.aclose()
        else:
            self._free.append(opened)
        return response

    async def close(self) -> None:
        for stack, _ in self._free:
            await stack.aclose()
        self._free.clear()


@contextlib.asynccontextmanager
async def open_pool(address: str) -> AsyncIterator[ConnectionPool]:
    pool = ConnectionPool(address)
    try:
        yield pool
    finally:
        await pool.close()
