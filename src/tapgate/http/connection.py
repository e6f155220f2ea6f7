"""Accepted connection, below HTTP: deadlines, flow control and the body memory budget."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, cast

from tapgate.http.body_budget import BodyBudget
from tapgate.http.http_messages import BodyStream, ClientDisconnectedError

#: Maximum bytes parsed per event loop iteration. One read can contain ten thousand pipelined
#: requests, which must not block the loop.
_SLICE_BYTES = 16 * 1024
#: Maximum bytes parsed at once, even if they contain enough requests to pause reading: at most
#: about 80. Most requests are smaller than a step.
_STEP_BYTES = 2 * 1024

IDLE_TIMEOUT_SECONDS = 75.0
MAX_DEADLINE_CHECK_SECONDS = 5.0  # maximum delay in noticing a missed deadline

#: After an early response, up to `LINGER_BYTES` of further data are read and discarded, for at most
#: `LINGER_SECONDS`. A client that is still sending can then read the response before the connection
#: closes.
LINGER_BYTES = 16 * 1024 * 1024
LINGER_SECONDS = 5.0

NO_DEADLINE = float("inf")

#: Chunk size in which larger bodies are written.
CHUNK_BYTES = 64 * 1024
#: A connection with more unsent bytes starts no further response. Small responses take about three
#: times their size in memory.
_MAX_UNSENT_BYTES = 8 * 1024
#: A client that does not read a large body's chunk in this time is disconnected.
_SEND_TIMEOUT_SECONDS = 30.0


class ServerState(Protocol):
    """The part of uvicorn's server state that connections use."""

    connections: set[Any]
    tasks: set[asyncio.Task[None]]
    default_headers: list[tuple[bytes, bytes]]


class BoundedConnection(ABC, asyncio.Protocol):
    """Connection that parses data in slices and pauses reading while unparsed data is left."""

    #: Shared by all connections in the process.
    body_budget: ClassVar = BodyBudget()

    def __init__(self, server_state: ServerState, loop: asyncio.AbstractEventLoop | None) -> None:
        self._server = server_state
        self._loop = loop or asyncio.get_running_loop()
        self.transport: asyncio.Transport
        self._peer = "local"
        self._is_reading = True
        self._backlog = memoryview(b"")  # received but not yet parsed
        self._is_transport_reading = True
        self._discarded_bytes: int | None = (
            None  # bytes discarded since parsing ended; None while parsing
        )
        self._pause_timer: asyncio.TimerHandle | None = None  # ends a pause in reading
        self.held_bytes = 0  # body bytes for requests without a response
        self._charged_bytes = 0  # portion charged to the budget
        self._can_write = True
        self._write_waiter: asyncio.Future[None] | None = None
        self._deadline = NO_DEADLINE
        self._timer: asyncio.TimerHandle
        self.is_closed = False
        self.on_lost: Callable[[], None] | None = None

    @abstractmethod
    def _parse(self, data: bytes | memoryview) -> None:
        """Parse at most `_STEP_BYTES` of received data."""

    @abstractmethod
    def _continue_reading(self) -> None:
        """Resume reading and request handling, for example when a timed pause ends."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=_MAX_UNSENT_BYTES)
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self._peer = peer[0]
        self._server.connections.add(self)
        self._deadline = self._loop.time() + IDLE_TIMEOUT_SECONDS
        self._check_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True
        self._wake_writer()
        self._timer.cancel()
        self._cancel_pause()
        self._server.connections.discard(self)
        self._drop_backlog()
        self.held_bytes = 0
        self._charge_budget()
        if self.on_lost is not None:
            self.on_lost()
            self.on_lost = None

    def pause_writing(self) -> None:
        self._can_write = False

    def resume_writing(self) -> None:
        self._can_write = True
        self._wake_writer()

    def _wake_writer(self) -> None:
        if self._write_waiter is not None and not self._write_waiter.done():
            self._write_waiter.set_result(None)

    async def _write_stream(self, stream: BodyStream) -> None:
        """Write a body as fast as the client reads it."""
        async for chunk in stream:
            await self._wait_until_writable()
            self.transport.write(chunk)

    async def _write_large_body(self, body: bytes) -> None:
        """Write a body as fast as the client reads it, without a copy per connection.

        Many connections may send the same body, such as the OpenAPI document.
        """
        view = memoryview(body)
        for start in range(0, len(body), CHUNK_BYTES):
            await self._wait_until_writable()
            self.transport.write(view[start : start + CHUNK_BYTES])

    async def _wait_until_writable(self) -> None:
        while not (self._can_write or self.is_closed):
            self._write_waiter = self._loop.create_future()
            try:
                async with asyncio.timeout(_SEND_TIMEOUT_SECONDS):
                    await self._write_waiter
            except TimeoutError:
                raise ClientDisconnectedError from None
        if self.is_closed:
            raise ClientDisconnectedError

    def _close(self) -> None:
        """Close once pending data is written. Abort after `IDLE_TIMEOUT_SECONDS`."""
        self._deadline = self._loop.time() + IDLE_TIMEOUT_SECONDS
        self._cancel_pause()
        self.transport.close()

    def _check_deadline(self) -> None:
        remaining = self._deadline - self._loop.time()
        if remaining <= 0:
            self.transport.abort()
        else:
            delay = min(remaining, MAX_DEADLINE_CHECK_SECONDS)
            self._timer = self._loop.call_later(delay, self._check_deadline)

    def data_received(self, data: bytes) -> None:
        if self._discarded_bytes is not None:
            self._discarded_bytes += len(data)
            if self._discarded_bytes > LINGER_BYTES:
                self._close()
            return
        if len(data) <= _STEP_BYTES and not self._backlog:
            self._parse(data)
        else:
            self._backlog = memoryview(bytes(self._backlog) + data if self._backlog else data)
            self._parse_backlog()

    def _parse_backlog(self) -> None:
        for _ in range(_SLICE_BYTES // _STEP_BYTES):
            if not self._backlog or not self._is_reading:
                break
            part, self._backlog = self._backlog[:_STEP_BYTES], self._backlog[_STEP_BYTES:]
            self._parse(part)
        self._update_flow_control()
        if self._backlog and self._is_reading:
            self._loop.call_soon(self._parse_backlog)

    def _drop_backlog(self) -> None:
        self._backlog = memoryview(b"")
        self._update_flow_control()

    def _pause_reading(self) -> None:
        self._is_reading = False
        self._update_flow_control()

    def _resume_reading(self) -> None:
        if not self._is_reading and not self.is_closed:
            self._is_reading = True
            self._update_flow_control()
            if self._backlog:
                self._loop.call_soon(self._parse_backlog)

    def _update_flow_control(self) -> None:
        """Let the transport read only while reading is enabled and the backlog is empty."""
        should_read = self._is_reading and not self._backlog
        if should_read != self._is_transport_reading and not self.transport.is_closing():
            self._is_transport_reading = should_read
            if should_read:
                self.transport.resume_reading()
            else:
                self.transport.pause_reading()

    def _pause_reading_for(self, seconds: float) -> None:
        """Pause reading for some time. TCP flow control holds back the client's data."""
        self._pause_reading()
        self._pause_timer = self._loop.call_later(seconds, self._end_pause)

    def _end_pause(self) -> None:
        self._pause_timer = None
        self._continue_reading()

    def _cancel_pause(self) -> None:
        if self._pause_timer is not None:
            self._pause_timer.cancel()
            self._pause_timer = None

    def _charge_budget(self) -> bool:
        """Update the charge to the bytes held. Return False if the budget rejects it."""
        charge = self.body_budget.resize(self._peer, self._charged_bytes, self.held_bytes)
        if charge is not None:
            self._charged_bytes = charge
        return charge is not None
