"""HTTP/1.1 on one connection, for uvicorn's server: `uvicorn.Config(app, http=TheWire)`, where
`TheWire` is a `Wire` that knows how its service refuses what is not HTTP.

It does what this application needs and nothing else, at half the cost of a general protocol: a
request comes in pieces, its answer goes out whole and in one write. Parsing is httptools'. What a
client may make the server keep is bounded: the head, the body waiting to be read, the requests
sent ahead, the time a request may take to come in, and what is read after an early answer. Whom an
answer tells to come later is not listened to until then, so that who repeats at once cannot use up
the processor with being refused.
"""

import asyncio
import secrets
from abc import abstractmethod
from collections import deque
from typing import Any, Protocol, cast

import httptools
import structlog

from tapgate.service import logs
from tapgate.service.encoding import encoded
from tapgate.service.exchange import Exchange
from tapgate.service.http import Answer, Disconnected, add_header, header

_log = structlog.get_logger()

_HEAD_BYTES = 64 * 1024
#: What a header counts beside its name and value, as in HTTP/2 (RFC 9113, 6.5.2): each costs more
#: than its bytes, and thousands of one name are put together one by one.
_LINE_BYTES = 32
_BODY_BYTES_AHEAD = 64 * 1024
_REQUESTS_AHEAD = 16

_IDLE_SECONDS = 75.0
_RECEIVE_SECONDS = 120.0
_LONGEST_LOOK_SECONDS = 5.0  # how late a deadline may be noticed

#: How much of a body, and for how long, is still read and thrown away after an answer that did not
#: wait for it: a client that is busy sending must come to read the answer before the end.
_LINGER_BYTES = 16 * 1024 * 1024
_LINGER_SECONDS = 5.0

_NEVER = float("inf")


class ServerState(Protocol):
    """What uvicorn's server keeps about its connections."""

    connections: set[Any]
    tasks: set[asyncio.Task[None]]
    default_headers: list[tuple[bytes, bytes]]


class Wire(asyncio.Protocol):
    def __init__(
        self,
        config: Any,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._respond = config.loaded_app.respond
        self._server = server_state
        self._loop = _loop or asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._peer = "local"
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._head_size = 0
        self._in_head = False
        self._began = False  # a request, with the data just received
        self._unfinished_head = 0
        self._incoming: Exchange | None = None  # whose body is coming
        self._current: Exchange | None = None  # being answered, or answered before it was complete
        self._ahead: deque[Exchange] = deque()
        self._is_old: bool | None = None  # HTTP/1.0, where every answer ends the connection
        self._reading = True
        self._writing = True
        self._last = False  # no request is taken after the current one
        self._unheard: int | None = None  # bytes that came after nobody listened any more
        self._resting: asyncio.TimerHandle | None = None  # nothing is taken before its end
        self._deadline = _NEVER
        self._timer: asyncio.TimerHandle
        self.closed = False

    @staticmethod
    @abstractmethod
    def not_http(sentence: str) -> Answer:
        """A refusal in the form that the service's other refusals have."""

    # The connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self._peer = peer[0]
        self._server.connections.add(self)
        self._deadline = self._loop.time() + _IDLE_SECONDS
        self._look_at_the_time()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self._timer.cancel()
        self._stop_resting()
        self._ahead.clear()
        if self._current is not None:
            self._current.wake()
        self._server.connections.discard(self)
        # What knows this one would stay with it until the collector finds them.
        self._current = self._incoming = None
        del self._parser

    def eof_received(self) -> bool:
        """A client that has sent all it wants may still wait for answers."""
        self._last = True
        return self._current is not None and self._incoming is not None and self._incoming.complete

    def pause_writing(self) -> None:
        self._writing = False

    def resume_writing(self) -> None:
        self._writing = True
        self._start_next()

    def shutdown(self) -> None:
        """The server is told to stop: what is under way is still answered."""
        self._last = True
        if self._current is None:
            self._close()

    def _close(self) -> None:
        """Once what was written is read, or nobody has read it for long."""
        self._deadline = self._loop.time() + _IDLE_SECONDS
        self._stop_resting()
        self._transport.close()

    def _look_at_the_time(self) -> None:
        left = self._deadline - self._loop.time()
        if left <= 0:
            self._transport.abort()
        else:
            delay = min(left, _LONGEST_LOOK_SECONDS)
            self._timer = self._loop.call_later(delay, self._look_at_the_time)

    # What comes in

    def data_received(self, data: bytes) -> None:
        if self._unheard is not None:
            self._unheard += len(data)
            if self._unheard > _LINGER_BYTES:
                self._close()
            return
        left = self._read(data)
        while left and self._unheard is None and not self.closed:
            left = self._read(left)

    def _read(self, data: bytes | memoryview) -> bytes | memoryview:
        """What is left where a request offered to speak something else, and was read anew."""
        self._began = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            return self._decline(memoryview(data)[offer.args[0] :])
        except httptools.HttpParserError:
            self._refuse()
        else:
            if self._in_head and not self._began:
                # The parser collects a header by itself, however long it is.
                self._unfinished_head += len(data)
                if self._unfinished_head > _HEAD_BYTES:
                    self._refuse()
        return b""

    def on_message_begin(self) -> None:
        self._began = self._in_head = True
        self._unfinished_head = 0
        self._url = b""
        self._headers = {}
        self._head_size = 0
        self._incoming = None
        if self._current is None:
            self._deadline = self._loop.time() + _RECEIVE_SECONDS

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value) + _LINE_BYTES)
        if self._incoming is None:  # else it is a trailer, which nobody asks for
            add_header(self._headers, name.lower(), value)

    def on_headers_complete(self) -> None:
        parser = self._parser
        self._in_head = False
        if parser.should_upgrade() and parser.get_method() != b"CONNECT":
            return  # `_decline` goes on with it
        if self._is_old is None:
            self._is_old = parser.get_http_version() == "1.0"
        keep_alive = not self._is_old and parser.should_keep_alive()
        path, query = self._path_and_query()
        method = parser.get_method().decode("latin-1")
        exchange = Exchange(self, method, path, query, self._headers, self._peer, keep_alive)
        self._incoming = exchange
        if self._can_start:
            self._start(exchange)
        else:
            self._ahead.append(exchange)
            if len(self._ahead) > _REQUESTS_AHEAD:
                self._pause_reading()

    def on_body(self, body: bytes) -> None:
        exchange = self._incoming
        assert exchange is not None
        exchange.add(body)
        if exchange.answered:
            if exchange.size > _LINGER_BYTES:
                self._close()
        elif exchange.size > _BODY_BYTES_AHEAD:
            self._pause_reading()

    def on_message_complete(self) -> None:
        exchange = self._incoming
        if exchange is None:  # an offer to speak something else, see `_decline`
            return
        exchange.complete = True
        exchange.wake()
        if exchange.answered:
            self._close()
        else:
            self._deadline = _NEVER

    def _decline(self, rest: memoryview) -> bytes | memoryview:
        """Another protocol was offered, as Java's client does with `h2c`. Nothing else is spoken
        here: the request is read again, as if nothing had been offered, and then its body. Not one
        within the other: thousands of offers may come at once."""
        method = self._parser.get_method()
        if method == b"CONNECT":
            self._stop_taking_requests()
            return b""
        version = self._parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (method, self._url, version)]
        for name, value in self._headers.items():
            if name == b"connection":
                words = [word.strip() for word in value.lower().split(b",")]
                kept = [word for word in words if word in (b"close", b"keep-alive")]
                lines.append(b"connection: " + b", ".join(kept))
            elif name != b"upgrade":
                lines.append(b"%b: %b" % (name, value))
        self._parser = httptools.HttpRequestParser(self)
        self._read(b"\r\n".join(lines) + b"\r\n\r\n")
        return rest

    def _count_head(self, size: int) -> None:
        self._head_size += size
        if self._head_size > _HEAD_BYTES:
            raise ValueError("the head of a request is too large")

    def _path_and_query(self) -> tuple[str, bytes]:
        url = self._url
        if url.startswith(b"/"):
            path, _, query = url.partition(b"?")
        else:
            parsed = httptools.parse_url(url)
            path, query = parsed.path or b"*", parsed.query or b""
        return path.decode("latin-1"), query

    def _pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if not self._reading and not self.closed:
            self._reading = True
            self._transport.resume_reading()

    def _rest(self, seconds: float) -> None:
        """What is sent meanwhile waits with the sender."""
        self._pause_reading()
        self._resting = self._loop.call_later(seconds, self._end_rest)

    def _end_rest(self) -> None:
        self._resting = None
        self._go_on_reading()

    def _stop_resting(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None

    def _stop_taking_requests(self) -> None:
        self._last = True
        self._pause_reading()

    def _refuse(self) -> None:
        """What came is not HTTP. Requests before it are still answered."""
        self._last = True
        current = self._current
        if current is not None and current.complete:
            self._pause_reading()
            return
        if current is None or not current.answered:
            answer = self.not_http("This is not HTTP/1.1")
            named = answer._replace(head=answer.head + header("x-request-id", secrets.token_hex(8)))
            self._transport.write(encoded(named, self._server.default_headers, keep_alive=False))
        # Who is still sending must come to read the answer: it would be lost with the connection.
        self._unheard = 0
        self._deadline = self._loop.time() + _LINGER_SECONDS
        if not self._transport.is_closing():
            self._transport.write_eof()
            self._resume_reading()

    # What goes out

    def go_on(self, exchange: Exchange) -> None:
        """The application waits for more of the body."""
        if not exchange.told_to_continue:
            exchange.told_to_continue = True
            if b"expect" in exchange.headers:
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._resume_reading()

    def _answer(self, exchange: Exchange, answer: Answer) -> None:
        goes_on = not self._last or bool(self._ahead)
        keep_alive = goes_on and exchange.keep_alive and exchange.complete
        if exchange.method == "HEAD":
            answer = answer._replace(body=b"")
        data = encoded(answer, self._server.default_headers, keep_alive=keep_alive)
        exchange.answered = True
        if self.closed:
            return
        self._transport.write(data)
        if keep_alive:
            self._current = None
            self._deadline = self._loop.time() + _IDLE_SECONDS
            if answer.pause:
                self._rest(answer.pause)
            else:
                self._go_on_reading()
        elif exchange.complete:
            self._close()
        else:
            exchange.size = 0
            self._deadline = self._loop.time() + _LINGER_SECONDS
            self._resume_reading()

    def _go_on_reading(self) -> None:
        if not self._last:
            self._resume_reading()  # a large body may have stopped it
        self._start_next()

    @property
    def _can_start(self) -> bool:
        return self._current is None and self._writing and self._resting is None

    def _start_next(self) -> None:
        if self._ahead and self._can_start:
            self._start(self._ahead.popleft())
            self._resume_reading()

    def _start(self, exchange: Exchange) -> None:
        self._current = exchange
        if exchange.complete:
            self._deadline = _NEVER
        exchange.task = self._loop.create_task(self._run(exchange))
        self._server.tasks.add(exchange.task)

    async def _run(self, exchange: Exchange) -> None:
        try:
            self._answer(exchange, await self._respond(exchange))
        except Disconnected:
            pass
        except Exception as error:
            _log.error("wire.failed", failure=logs.trace(error))
        self._server.tasks.discard(exchange.task)
        if not exchange.answered:
            self._transport.abort()
