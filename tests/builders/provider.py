"""API client and webhook server of a business that uses the fake provider."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2

ACCESS_TOKEN = "the access token"
PHONE_NUMBER_ID = "106540352242922"
GRAPH_APP_SECRET = "the app secret"


class WebhookServer:
    """Webhook endpoint that responds with `statuses` in order, then with 200."""

    def __init__(self) -> None:
        self.url = ""
        self.statuses: list[int] = []
        #: Raw bodies and signatures.
        self.received: list[tuple[bytes, str]] = []

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/webhook"
        try:
            yield
        finally:
            server.close()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])
        }
        body = await reader.readexactly(int(headers["content-length"]))
        self.received.append((body, headers.get("x-hub-signature-256", "")))
        status = self.statuses.pop(0) if self.statuses else 200
        writer.write(
            f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
        )
        await writer.drain()
        writer.close()


def open_client(url: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        base_url=url,
        headers={"Authorization": f"Bearer {ACCESS_TOKEN}"},
        trust_env=False,
        timeout=30,
    )
