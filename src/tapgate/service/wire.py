"""HTTP/1.1 on one connection, for uvicorn's server: `uvicorn.Config(app, http=TheWire)`, where
`TheWire` is a `Wire` that renders errors in its service's format.

It does what this application needs and nothing else, at half the cost of a general protocol: a
request comes in pieces, its response goes out whole and in one write. Parsing is httptools'.
Everything a client can make the server hold or do is bounded: the head, whatever arrives without
being part of a body, the body, pipelined requests, the time and rate of receiving, and what is
read after an early response. After a 503, reading pauses until Retry-After has passed, so a tight
retry loop cannot burn CPU.
"""

import asyncio
import secrets
from abc import abstractmethod
from collections import deque
from typing import Any

import httptools
import structlog

from tapgate.errors import ApiError, Code
from tapgate.service import connection, logs
from tapgate.service.bodies import FREE_BYTES
from tapgate.service.connection import NEVER, BoundedConnection, ServerState
from tapgate.service.encoding import encoded
from tapgate.service.exchange import Exchange
from tapgate.service.heads import (
    FIELD_OVERHEAD_BYTES,
    MAX_HEAD_BYTES,
    MAX_TARGET_BYTES,
    BadHeadError,
    require_host,
    split_target,
    without_upgrade,
)
from tapgate.service.http import Answer, Disconnected, add_header, header

_log = structlog.get_logger()

#: What may arrive without being part of a body, beside one byte for each byte of a body: the head,
#: blank lines before it, sizes and extensions of chunks, trailers.
_OVERHEAD_BYTES = MAX_HEAD_BYTES
_BODY_BYTES_AHEAD = 64 * 1024
_REQUESTS_AHEAD = 16

_HEAD_SECONDS = 30.0
#: A body must arrive within `_RECEIVE_SECONDS`, without a pause of `_STALL_SECONDS`, and, after
#: `_GRACE_SECONDS`, on average at `_MIN_BYTES_PER_SECOND`.
_RECEIVE_SECONDS = 120.0
_STALL_SECONDS = 15.0
_GRACE_SECONDS = 20.0
_MIN_BYTES_PER_SECOND = 1024


class Wire(BoundedConnection):
    def __init__(
        self,
        config: Any,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(server_state, _loop)
        self._respond = config.loaded_app.respond
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._head_size = 0
        self._host: bytes | None = None  # of the last request
        self._began = False  # a request, with the data just parsed
        self._began_at = 0.0
        self._body_bytes = 0  # in the data just parsed
        self._overhead = 0  # bytes that were no part of a body, see `_OVERHEAD_BYTES`
        self._incoming: Exchange | None = None  # whose body is coming
        self._current: Exchange | None = None  # being answered, or answered before it was complete
        self._ahead: deque[Exchange] = deque()
        self._is_old: bool | None = None  # HTTP/1.0, where every answer ends the connection
        self._writing = True
        self._last = False  # no request is taken after the current one

    @staticmethod
    @abstractmethod
    def render_error(error: ApiError) -> Answer:
        """Render an error in the service's format."""

    # The connection

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._ahead.clear()
        if self._current is not None:
            self._current.wake()
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

    # What comes in

    def _parse(self, data: bytes | memoryview) -> None:
        left = self._read(data)
        while left and self._unheard is None and not self.closed:
            left = self._read(left)
        exchange = self._incoming
        if exchange is not None and not exchange.complete and exchange is self._current:
            self._limit_receiving(exchange)

    def _limit_receiving(self, exchange: Exchange) -> None:
        if not exchange.answered and self._unheard is None:
            slowest = _GRACE_SECONDS + exchange.size / _MIN_BYTES_PER_SECOND
            end = self._began_at + min(_RECEIVE_SECONDS, slowest)
            self._deadline = min(end, self._loop.time() + _STALL_SECONDS)

    def _read(self, data: bytes | memoryview) -> bytes | memoryview:
        """Return what is left where a request offered another protocol and was parsed again."""
        self._began = False
        self._body_bytes = 0
        rest = None
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            rest = memoryview(data)[offer.args[0] :]
        except httptools.HttpParserError as error:
            reason = error.__context__
            self._refuse(str(reason) if isinstance(reason, BadHeadError) else None)
        else:
            if self._began:
                self._overhead = 0
            else:
                # The parser collects the line of a head or a trailer however long it is.
                self._overhead = max(0, self._overhead + len(data) - 2 * self._body_bytes)
                if self._overhead > _OVERHEAD_BYTES:
                    self._refuse()
        return b"" if rest is None else self._decline(rest)

    def on_message_begin(self) -> None:
        self._began = True
        self._url = b""
        self._headers = {}
        self._head_size = 0
        self._incoming = None
        if self._current is None:
            self._deadline = self._loop.time() + _HEAD_SECONDS

    def on_url(self, url: bytes) -> None:
        self._url += url
        if len(self._url) > MAX_TARGET_BYTES:
            raise BadHeadError("The request target is too long")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_size += len(name) + len(value) + FIELD_OVERHEAD_BYTES
        if self._head_size > MAX_HEAD_BYTES:
            raise BadHeadError("The head of the request is too large")
        if self._incoming is None:  # trailers are counted and ignored
            add_header(self._headers, name.lower(), value)

    def on_headers_complete(self) -> None:
        parser = self._parser
        if parser.should_upgrade() and parser.get_method() != b"CONNECT":
            return  # `_decline` goes on with it
        if self._is_old is None:
            self._is_old = parser.get_http_version() == "1.0"
        host = self._headers.get(b"host")
        if host is None or host != self._host:
            require_host(host, is_old=self._is_old)
            self._host = host
        keep_alive = not self._is_old and parser.should_keep_alive()
        path, query = split_target(self._url)
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
        held = exchange.held
        exchange.add(body)
        self._body_bytes += len(body)
        self._held += exchange.held - held
        if exchange.answered:
            if exchange.size > connection.LINGER_BYTES:
                self._close()
            return
        if self._held > FREE_BYTES and not self._charge():
            exchange.refuse()
        if exchange.size > _BODY_BYTES_AHEAD and not exchange.is_wanted:
            self._pause_reading()

    def on_message_complete(self) -> None:
        exchange = self._incoming
        if exchange is None:  # an offer to speak something else, see `_decline`
            return
        exchange.complete = True
        exchange.wake()
        if exchange.answered:
            self._close()
        elif exchange is self._current:
            # Only a request in progress may take its time. One that waits for the client to read
            # earlier responses stays under the deadline.
            self._deadline = NEVER

    def _decline(self, rest: memoryview) -> bytes | memoryview:
        """Ignore an offer of another protocol, as Java's client makes with `h2c`: parse the head
        again without it, then the body. Not recursively: thousands of offers may be pipelined."""
        method = self._parser.get_method()
        if method == b"CONNECT":
            self._stop_taking_requests()
            return b""
        version = self._parser.get_http_version().encode()
        again = without_upgrade(method, self._url, version, self._headers)
        self._parser = httptools.HttpRequestParser(self)
        self._read(again)
        return rest

    def _stop_taking_requests(self) -> None:
        self._last = True
        self._pause_reading()

    def _refuse(self, sentence: str | None = None) -> None:
        """Answer 400 and close. Requests that came before are still answered."""
        self._last = True
        current = self._current
        if current is not None and current.complete:
            self._pause_reading()
            return
        if current is None or not current.answered:
            error = ApiError(Code.INVALID_REQUEST, sentence or "This is not HTTP/1.1")
            answer = self.render_error(error)
            named = answer._replace(head=answer.head + header("x-request-id", secrets.token_hex(8)))
            self._transport.write(encoded(named, self._server.default_headers, keep_alive=False))
        # Who is still sending must come to read the answer: it would be lost with the connection.
        self._unheard = 0
        self._drop_backlog()
        self._deadline = self._loop.time() + connection.LINGER_SECONDS
        if not self._transport.is_closing():
            self._transport.write_eof()
            self._resume_reading()

    # What goes out

    def go_on(self, exchange: Exchange) -> None:
        """The application waits for more of the body."""
        if not exchange.told_to_continue:
            exchange.told_to_continue = True
            self._limit_receiving(exchange)
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
        self._held -= exchange.held
        exchange.held = 0
        exchange.drop()
        if self._charged:
            self._charge()
        if self.closed:
            return
        self._transport.write(data)
        if keep_alive:
            self._current = None
            self._deadline = self._loop.time() + connection.IDLE_SECONDS
            if answer.pause:
                self._rest(answer.pause)
            else:
                self._go_on_reading()
        elif exchange.complete:
            self._close()
        else:
            exchange.size = 0
            self._deadline = self._loop.time() + connection.LINGER_SECONDS
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
        self._began_at = self._loop.time()
        if exchange.complete:
            self._deadline = NEVER
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
