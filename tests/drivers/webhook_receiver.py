"""Webhook endpoint for tests: a small HTTP server that records its requests."""

import asyncio
import base64
import hashlib
import hmac
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec


class ReceivedWebhook(NamedTuple):
    request_line: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.request_line.split(" ")[1]

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def content(self) -> dict[str, Any]:
        content: dict[str, Any] = msgspec.json.decode(self.body)
        return content

    @property
    def signatures(self) -> list[str]:
        return self.headers["webhook-signature"].split(" ")

    def is_signed_with(self, secret: str) -> bool:
        """Return whether a signature matches the secret, without using the gateway's code."""
        key = base64.b64decode(secret.split("_", 1)[1])
        signed = b".".join(
            (self.id.encode(), self.headers["webhook-timestamp"].encode(), self.body)
        )
        digest = hmac.new(key, signed, hashlib.sha256).digest()
        expected = "v1," + base64.b64encode(digest).decode()
        return expected in self.signatures


class WebhookReceiver:
    """Returns `responses` in order, then 204. Requests to `/slow` wait for `release_slow`."""

    def __init__(self) -> None:
        self.url = ""
        self.port = 0
        self.responses: list[bytes] = []
        self.received: list[ReceivedWebhook] = []
        self.release_slow = asyncio.Event()
        self.max_concurrent = 0
        self._concurrent = 0

    def enqueue_statuses(self, *statuses: int) -> None:
        self.responses = [
            f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode() for status in statuses
        ]

    def enqueue_response(self, status: int, body: bytes = b"", *headers: str) -> None:
        lines = [f"HTTP/1.1 {status} X", *headers, f"Content-Length: {len(body)}", "", ""]
        self.responses.append("\r\n".join(lines).encode() + body)

    @asynccontextmanager
    async def listen(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}"
        try:
            yield
        finally:
            self.release_slow.set()
            server.close()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._concurrent += 1
        self.max_concurrent = max(self.max_concurrent, self._concurrent)
        try:
            await self._handle_request(reader, writer)
        except (ConnectionError, EOFError):  # the sender was killed
            pass
        finally:
            self._concurrent -= 1
            writer.close()

    async def _handle_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        request, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in lines)
        }
        body = await reader.readexactly(int(headers["content-length"]))
        received = ReceivedWebhook(request, headers, body)
        self.received.append(received)
        if received.path == "/slow":
            await self.release_slow.wait()
        response = self.responses.pop(0) if self.responses else b"HTTP/1.1 204 X\r\n\r\n"
        writer.write(response)
        await writer.drain()
