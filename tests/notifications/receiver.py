"""An endpoint to deliver to: a small HTTP server that keeps what it was sent."""

import asyncio
import base64
import hashlib
import hmac
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec


class Received(NamedTuple):
    request: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.request.split(" ")[1]

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
        """Recomputed without the gateway's code; all signatures of the header are considered."""
        key = base64.b64decode(secret.split("_", 1)[1])
        signed = b".".join(
            (self.id.encode(), self.headers["webhook-timestamp"].encode(), self.body)
        )
        digest = hmac.new(key, signed, hashlib.sha256).digest()
        expected = "v1," + base64.b64encode(digest).decode()
        return expected in self.signatures


class Receiver:
    """Answers with `answers` in turn, then 204. What is sent to `/slow` waits for `hurry`."""

    def __init__(self) -> None:
        self.url = ""
        self.port = 0
        self.answers: list[bytes] = []
        self.received: list[Received] = []
        self.hurry = asyncio.Event()
        self.most_at_once = 0
        self._at_once = 0

    def status(self, *statuses: int) -> None:
        self.answers = [
            f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode() for status in statuses
        ]

    def respond(self, status: int, body: bytes = b"", *headers: str) -> None:
        lines = [f"HTTP/1.1 {status} X", *headers, f"Content-Length: {len(body)}", "", ""]
        self.answers.append("\r\n".join(lines).encode() + body)

    @asynccontextmanager
    async def listening(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}"
        try:
            yield
        finally:
            self.hurry.set()
            server.close()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await self._answer(reader, writer)
        except (ConnectionError, EOFError):  # whoever sent it was killed
            pass
        finally:
            self._at_once -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in lines)
        }
        body = await reader.readexactly(int(headers["content-length"]))
        received = Received(request, headers, body)
        self.received.append(received)
        if received.path == "/slow":
            await self.hurry.wait()
        answer = self.answers.pop(0) if self.answers else b"HTTP/1.1 204 X\r\n\r\n"
        writer.write(answer)
        await writer.drain()
