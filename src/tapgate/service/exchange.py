"""One request on a connection, as a service takes it, and how far its answer is."""

import asyncio
from typing import Protocol

from tapgate.errors import ApiError, Code
from tapgate.service.http import Disconnected

_LONGEST_NUMBER = 20  # digits of a declared length that are looked at


class Connection(Protocol):
    """What the request came in on."""

    closed: bool

    def go_on(self, exchange: "Exchange") -> None:
        """Let more of its body come in."""


class Exchange:
    """Is a `tapgate.service.http.Request`."""

    __slots__ = ("_connection", "_parts", "_waiter", "answered", "complete", "headers",
                 "keep_alive", "method", "path", "peer", "query", "size", "task",
                 "told_to_continue")  # fmt: skip

    def __init__(
        self,
        connection: Connection,
        method: str,
        path: str,
        query: bytes,
        headers: dict[bytes, bytes],
        peer: str,
        keep_alive: bool,
    ) -> None:
        self._connection = connection
        self._parts: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.peer = peer
        self.keep_alive = keep_alive
        self.told_to_continue = False
        self.size = 0  # of what has come and nobody has asked for
        self.complete = False
        self.answered = False
        self.task: asyncio.Task[None]

    async def body(self, limit: int) -> bytes:
        if self.complete and self.size <= limit and len(self._parts) == 1:
            return self._parts.pop()
        declared = self.headers.get(b"content-length")
        if declared and declared.isdigit() and int(declared[:_LONGEST_NUMBER]) > limit:
            raise ApiError(Code.PAYLOAD_TOO_LARGE)
        taken: list[bytes] = []
        size = 0
        while True:
            size += self.size
            if size > limit:
                raise ApiError(Code.PAYLOAD_TOO_LARGE)
            taken += self._parts
            self._parts = []
            self.size = 0
            if self.complete:
                return taken[0] if len(taken) == 1 else b"".join(taken)
            if self._connection.closed:
                raise Disconnected
            self._connection.go_on(self)
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def add(self, part: bytes) -> None:
        self.size += len(part)
        if not self.answered:
            self._parts.append(part)
            self.wake()

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
