"""Fake messenger: a small HTTP server that verifies service signatures."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from tapgate import signing

PATH = "/api/v1/messages/template"


class FakeMessenger:
    """Returns `statuses` in order, then 202; 401 for invalid signatures, 404 for other paths."""

    def __init__(self, secret: str) -> None:
        self.url = ""
        self.statuses: list[int] = []
        #: Responses are sent only while this is set.
        self.allow_responses = asyncio.Event()
        self.allow_responses.set()
        #: Number of requests received completely, with or without a response.
        self.requests = 0
        #: Bodies of requests with a valid signature, each with the message's ID added.
        self.received: list[dict[str, Any]] = []
        self._secret = secret.encode()

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}"
        try:
            yield
        finally:
            self.allow_responses.set()
            server.close()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(EOFError, ConnectionError):
            # A killed sender may disconnect before it sends a request or reads the response.
            await self._handle_request(reader, writer)

    async def _handle_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])
        }
        body = await reader.readexactly(int(headers["content-length"]))
        self.requests += 1
        await self.allow_responses.wait()
        status = self._check_request(head[0], headers, body)
        writer.write(
            f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
        )
        await writer.drain()

    def _check_request(self, request: str, headers: dict[str, str], body: bytes) -> int:
        if request != f"POST {PATH} HTTP/1.1":
            return 404
        signed = signing.service_signed_string("POST", PATH, b"", headers["x-service-timestamp"])
        genuine = signing.verify(self._secret, headers["x-service-signature"], signed)
        if headers["x-service-name"] != "gateway" or not genuine:
            return 401
        self.received.append({"id": headers["idempotency-key"], **msgspec.json.decode(body)})
        return self.statuses.pop(0) if self.statuses else 202
