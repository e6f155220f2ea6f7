"""A real HTTP server before the real gateway, that does not always answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import httpx2

#: How it takes a request: let it through; drop it unread by the gateway; let it through and drop
#: the answer; never answer.
SERVE, DROP, ACT_AND_DROP, HANG = "serve", "drop", "act and drop", "hang"


class Seen(NamedTuple):
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Unsteady:
    """Takes requests as `plan` says, in turn, then lets them through. A plan may also have whole
    answers, as bytes."""

    def __init__(self, gateway: httpx2.AsyncBaseTransport) -> None:
        self._gateway = gateway
        self.plan: list[str | bytes] = []
        self.seen: list[Seen] = []
        self.url = ""
        self._stopping = asyncio.Event()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["Unsteady"]:
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
            while await self._take(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        method, target, _ = first.split(" ")
        parted = (line.split(": ", 1) for line in lines)
        headers = {name.lower(): value for name, value in parted}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        seen = Seen(method, target, headers, body)
        self.seen.append(seen)
        how = self.plan.pop(0) if self.plan else SERVE
        if isinstance(how, bytes):
            writer.write(how)
        elif how == HANG:
            await self._stopping.wait()
        elif how in (SERVE, ACT_AND_DROP):
            answer = await self._carried_on(seen)
            if how == SERVE:
                writer.write(answer)
        await writer.drain()
        return isinstance(how, bytes) or how == SERVE

    async def _carried_on(self, seen: Seen) -> bytes:
        request = httpx2.Request(
            seen.method, "http://gateway" + seen.target, headers=seen.headers, content=seen.body
        )
        answer = await self._gateway.handle_async_request(request)
        content = await answer.aread()
        head = [f"HTTP/1.1 {answer.status_code} X"]
        head += [f"{name}: {value}" for name, value in answer.headers.items()]
        if answer.status_code != 204 and "content-length" not in answer.headers:
            head.append(f"content-length: {len(content)}")
        return "\r\n".join([*head, "", ""]).encode() + content


def answer(status: int, body: str = "", *more: str) -> bytes:
    head = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *more, "", body]
    return "\r\n".join(head).encode()


def refusal(status: int, code: str, *more: str) -> bytes:
    return answer(status, f'{{"error": "No", "code": "{code}"}}', *more)


BUSY = refusal(503, "SERVICE_UNAVAILABLE", "Retry-After: 0")
