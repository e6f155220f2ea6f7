"""HTTP server in front of the gateway that can drop requests, drop responses or hang."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import httpx2

#: How a request is handled: forward it; drop it before the gateway receives it; forward it and drop
#: the response; neither forward it nor respond.
SERVE, DROP, SERVE_AND_DROP, HANG = "serve", "drop", "serve and drop", "hang"


class ReceivedRequest(NamedTuple):
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class FlakyServer:
    """Handles each request according to the next of `behaviors`, or forwards it if none is left.

    A behavior may also be a complete response, as bytes.
    """

    def __init__(self, gateway: httpx2.AsyncBaseTransport) -> None:
        self._gateway = gateway
        self.behaviors: list[str | bytes] = []
        self.requests: list[ReceivedRequest] = []
        self.url = ""
        self._stopping = asyncio.Event()

    @asynccontextmanager
    async def listen(self) -> AsyncIterator["FlakyServer"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            self._stopping.set()
            server.close()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._handle_request(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _handle_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        request_line, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        method, target, _ = request_line.split(" ")
        header_pairs = (line.split(": ", 1) for line in lines)
        headers = {name.lower(): value for name, value in header_pairs}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        received = ReceivedRequest(method, target, headers, body)
        self.requests.append(received)
        behavior = self.behaviors.pop(0) if self.behaviors else SERVE
        if isinstance(behavior, bytes):
            writer.write(behavior)
        elif behavior == HANG:
            await self._stopping.wait()
        elif behavior in (SERVE, SERVE_AND_DROP):
            response = await self._forward(received)
            if behavior == SERVE:
                writer.write(response)
        await writer.drain()
        return isinstance(behavior, bytes) or behavior == SERVE

    async def _forward(self, received: ReceivedRequest) -> bytes:
        request = httpx2.Request(
            received.method,
            "http://gateway" + received.target,
            headers=received.headers,
            content=received.body,
        )
        response = await self._gateway.handle_async_request(request)
        content = await response.aread()
        head = [f"HTTP/1.1 {response.status_code} X"]
        head += [f"{name}: {value}" for name, value in response.headers.items()]
        if response.status_code != 204 and "content-length" not in response.headers:
            head.append(f"content-length: {len(content)}")
        return "\r\n".join([*head, "", ""]).encode() + content


def build_response(status: int, body: str = "", *more: str) -> bytes:
    head = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *more, "", body]
    return "\r\n".join(head).encode()


def build_error_response(status: int, code: str, *more: str) -> bytes:
    return build_response(status, f'{{"error": "Request failed", "code": "{code}"}}', *more)


UNAVAILABLE_RESPONSE = build_error_response(503, "SERVICE_UNAVAILABLE", "Retry-After: 0")
