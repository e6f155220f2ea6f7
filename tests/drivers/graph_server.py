"""A messaging provider on a local port."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FakeGraphServer:
    """Server that records requests and sends queued raw responses, or none if none is queued."""

    def __init__(self) -> None:
        self.url = ""
        self.responses: list[bytes] = []
        self.requests: list[str] = []

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield
        finally:
            server.close()
            await server.wait_closed()

    def enqueue_response(self, status: int, body: bytes = b"{}", *headers: str) -> None:
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers]
        self.responses.append("\r\n".join(lines).encode() + b"\r\nConnection: close\r\n\r\n" + body)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
            response = self.responses.pop(0) if self.responses else b""
            writer.write(response)
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()
