"""HTTP request on a connection, with its body and response state."""

import asyncio
from collections.abc import Awaitable
from typing import Any, Protocol, TypeVar

from tapgate.http.http_messages import ClientDisconnectedError, check_content_length
from tapgate.http.overload import OverloadError
from tapgate_client.errors import ApiError, Code

T = TypeVar("T")


class BodySource(Protocol):
    """The connection that receives the request."""

    is_closed: bool

    def resume_body(self, request: "HttpRequest") -> None:
        """Receive more body data."""


class HttpRequest:
    """Implementation of `tapgate.http.http_messages.Request`."""

    __slots__ = (
        "_buffer", "_connection", "_is_discarded", "_limit", "_waiter", "_work",
        "has_requested_body", "has_responded", "headers", "held_bytes", "is_complete",
        "is_overloaded", "keep_alive", "method", "path", "peer", "query", "received_bytes", "task",
    )  # fmt: skip

    def __init__(
        self,
        connection: BodySource,
        method: str,
        path: str,
        query: bytes,
        headers: dict[bytes, bytes],
        peer: str,
        keep_alive: bool,
    ) -> None:
        self._connection = connection
        self._buffer: bytes | bytearray = b""
        self._is_discarded = False
        self._limit: int | None = None  # body limit; None until the application reads the body
        self._waiter: asyncio.Future[None] | None = None
        self._work: asyncio.Future[Any] | None = None  # canceled if the client disconnects
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.peer = peer
        self.keep_alive = keep_alive
        self.has_requested_body = False
        self.received_bytes = 0  # body bytes received so far
        self.held_bytes = 0  # body bytes held in memory until the response
        self.is_complete = False
        self.has_responded = False
        self.is_overloaded = False  # the body memory budget is exhausted
        self.task: asyncio.Task[None]

    @property
    def is_reading_body(self) -> bool:
        """Whether the application has started to read the body."""
        return self._limit is not None

    async def read_body(self, limit: int) -> bytes:
        if not self.is_complete:
            await self._receive_all(limit)
        if self.received_bytes > limit:
            raise ApiError(Code.PAYLOAD_TOO_LARGE)
        if self.is_overloaded:
            raise OverloadError
        body, self._buffer = self._buffer, b""
        return body if type(body) is bytes else bytes(body)

    async def cancel_on_disconnect(self, work: Awaitable[T]) -> T:
        task = asyncio.ensure_future(work)
        if self._connection.is_closed:
            task.cancel()
        self._work = task
        try:
            return await task
        except asyncio.CancelledError:
            if self._connection.is_closed:
                raise ClientDisconnectedError from None
            raise
        finally:
            self._work = None

    @property
    def is_cancelable(self) -> bool:
        """Whether the request is being processed only for a client that stays connected."""
        return self._work is not None

    def on_disconnect(self) -> None:
        """End the work that only the client waited for."""
        self.wake_reader()
        if self._work is not None:
            self._work.cancel()

    async def _receive_all(self, limit: int) -> None:
        check_content_length(self.headers, limit)
        self._limit = limit
        while not (self.is_complete or self.is_overloaded or self.received_bytes > limit):
            if self._connection.is_closed:
                raise ClientDisconnectedError
            self._connection.resume_body(self)
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def append_body(self, chunk: bytes) -> None:
        """Append a body chunk to a single buffer: chunks may be small and numerous."""
        self.received_bytes += len(chunk)
        if self._is_discarded:
            return
        self.held_bytes += len(chunk)
        if not self._buffer:
            self._buffer = chunk
        elif type(self._buffer) is bytearray:
            self._buffer += chunk
        else:
            self._buffer = bytearray(self._buffer)
            self._buffer += chunk
        if self._limit is not None and self.received_bytes > self._limit:
            self.discard_body()
            self.wake_reader()

    def discard_body(self) -> None:
        """Free the buffer and ignore the rest of the body."""
        self._is_discarded = True
        self._buffer = b""

    def reject_overloaded(self) -> None:
        """Make `read_body` raise 503, because the body memory budget is exhausted."""
        self.is_overloaded = True
        self.discard_body()
        self.wake_reader()

    def wake_reader(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
