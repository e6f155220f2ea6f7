"""One request on a connection, as a service takes it, and how far its answer is."""

import asyncio
from typing import Protocol

from tapgate.errors import ApiError, Code
from tapgate.service.http import Disconnected, require_length
from tapgate.service.overload import OverloadError


class Connection(Protocol):
    """What the request came in on."""

    closed: bool

    def go_on(self, exchange: "Exchange") -> None:
        """Let more of its body come in."""


class Exchange:
    """Is a `tapgate.service.http.Request`."""

    __slots__ = ("_buffer", "_connection", "_is_dropped", "_limit", "_waiter", "answered",
                 "complete", "headers", "held", "keep_alive", "method", "overloaded", "path",
                 "peer", "query", "size", "task", "told_to_continue")  # fmt: skip

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
        self._buffer: bytes | bytearray = b""
        self._is_dropped = False
        self._limit: int | None = None  # of the body; None until the application asks for it
        self._waiter: asyncio.Future[None] | None = None
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.peer = peer
        self.keep_alive = keep_alive
        self.told_to_continue = False
        self.size = 0  # of the body as far as it was received
        self.held = 0  # of it, what takes up memory until the answer
        self.complete = False
        self.answered = False
        self.overloaded = False  # the process has no memory left for this body
        self.task: asyncio.Task[None]

    @property
    def is_wanted(self) -> bool:
        """Whether the application has asked for the body."""
        return self._limit is not None

    def require_length(self, limit: int) -> None:
        require_length(self.headers, limit)

    async def body(self, limit: int) -> bytes:
        if not self.complete:
            await self._wait_for_all(limit)
        if self.size > limit:
            raise ApiError(Code.PAYLOAD_TOO_LARGE)
        if self.overloaded:
            raise OverloadError
        body, self._buffer = self._buffer, b""
        return body if type(body) is bytes else bytes(body)

    async def _wait_for_all(self, limit: int) -> None:
        self.require_length(limit)
        self._limit = limit
        while not (self.complete or self.overloaded or self.size > limit):
            if self._connection.closed:
                raise Disconnected
            self._connection.go_on(self)
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def add(self, part: bytes) -> None:
        """Keep a part of the body, in one buffer: parts may be tiny and many."""
        self.size += len(part)
        if self._is_dropped:
            return
        self.held += len(part)
        if not self._buffer:
            self._buffer = part
        elif type(self._buffer) is bytearray:
            self._buffer += part
        else:
            self._buffer = bytearray(self._buffer)
            self._buffer += part
        if self._limit is not None and self.size > self._limit:
            self.drop()
            self.wake()

    def drop(self) -> None:
        """Free the buffer and discard the rest of the body: nothing will read it."""
        self._is_dropped = True
        self._buffer = b""

    def refuse(self) -> None:
        """Answer 503: there is no memory left for the body."""
        self.overloaded = True
        self.drop()
        self.wake()

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
