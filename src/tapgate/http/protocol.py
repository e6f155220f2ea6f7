"""HTTP/1.1 protocol for uvicorn's server.

Pass `HttpProtocol` and a `WebApp`, which also renders the protocol's errors, to
`uvicorn.Config(app, http=...)`.

The protocol supports only what Tapgate's services need, at half the cost of a general
implementation. It parses with httptools and sends each response in one write, except large bodies,
which are written as fast as the client reads them.

All resources that a client can consume are bounded: the head, framing overhead, the body, pipelined
requests, the time and rate of receiving, and the data read after an early response. After a
response with `Response.pause`, such as 503 under overload, reading pauses, so a tight retry loop
cannot burn CPU.
"""

import asyncio
import secrets
from collections import deque
from typing import Any

import httptools
import structlog

from tapgate.http import connection
from tapgate.http.body_budget import FREE_BODY_BYTES
from tapgate.http.connection import NO_DEADLINE, BoundedConnection, ServerState
from tapgate.http.http_messages import (
    ClientDisconnectedError,
    Response,
    add_header,
    encode_header,
    encode_response,
)
from tapgate.http.request import HttpRequest
from tapgate.http.request_head import (
    FIELD_OVERHEAD_BYTES,
    MAX_HEAD_BYTES,
    MAX_TARGET_BYTES,
    InvalidHeadError,
    encode_without_upgrade,
    require_host,
    split_target,
)
from tapgate.runtime import logs
from tapgate_client.errors import ApiError, Code

_log = structlog.get_logger()

#: Maximum framing overhead: the head, blank lines before the head, chunk sizes and extensions, and
#: trailers. Each byte of body received allows one further byte of overhead.
MAX_OVERHEAD_BYTES = MAX_HEAD_BYTES
#: Reading pauses after this many body bytes until the application starts to read the body.
_MAX_UNREAD_BODY_BYTES = 64 * 1024
#: Reading pauses while more requests than this are queued, or after a queued request whose head is
#: larger than `_MAX_QUEUED_HEAD_BYTES`.
MAX_PIPELINED_REQUESTS = 16
_MAX_QUEUED_HEAD_BYTES = 4 * 1024

HEAD_TIMEOUT_SECONDS = 30.0
#: A body must arrive within `RECEIVE_TIMEOUT_SECONDS`, without a pause of
#: `STALL_TIMEOUT_SECONDS`. It may take `MIN_RATE_GRACE_SECONDS`, plus one second per
#: `_MIN_BYTES_PER_SECOND` bytes received.
RECEIVE_TIMEOUT_SECONDS = 120.0
STALL_TIMEOUT_SECONDS = 15.0
MIN_RATE_GRACE_SECONDS = 20.0
_MIN_BYTES_PER_SECOND = 1024
_SHUTDOWN_GRACE_SECONDS = 1.0


class HttpProtocol(BoundedConnection):
    def __init__(
        self,
        config: Any,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(server_state, _loop)
        self.app = config.loaded_app
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._head_size = 0
        self._host: bytes | None = None  # the last request's Host, already validated
        self._has_begun = False  # whether the data just parsed began a request
        self._started_at = 0.0
        self._body_bytes = 0  # body bytes in the data just parsed
        self._overhead_bytes = 0  # framing overhead, see `MAX_OVERHEAD_BYTES`
        self._incoming: HttpRequest | None = None  # the request being received
        self._current: HttpRequest | None = (
            None  # in progress, or still being received after an early response
        )
        self.pipelined: deque[HttpRequest] = deque()
        self._is_http_1_0: bool | None = None  # from the first request; 1.0 closes after a response
        self._is_draining = False  # close after responding to the requests received so far

    # The connection

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.pipelined.clear()
        if self._current is not None:
            self._current.on_disconnect()
        # Break reference cycles, so that memory is freed without the garbage collector.
        self._current = self._incoming = None
        del self._parser

    def eof_received(self) -> bool:
        """Keep the connection open if a client that has finished sending still awaits responses.

        A client that disconnects looks the same. Work that only the client waits for is canceled.
        """
        self._is_draining = True
        current, incoming = self._current, self._incoming
        if current is None or incoming is None or current.is_cancelable:
            return False
        return incoming.is_complete

    def resume_writing(self) -> None:
        super().resume_writing()
        self._start_next()

    def drain(self) -> None:
        """Close after the next response."""
        self._is_draining = True

    def shutdown(self) -> None:
        """Close after responding to the requests already received.

        A new connection, or one that has sent part of a head, has a moment to send its request.
        """
        self._is_draining = True
        if self._is_idle:
            self._close()
        elif self._current is None:
            self._loop.call_later(_SHUTDOWN_GRACE_SECONDS, self._close_without_request)

    @property
    def _is_idle(self) -> bool:
        """Whether all requests received so far have a response. False for a new connection."""
        return self._current is None and self._incoming is not None

    def _close_without_request(self) -> None:
        if self._current is None and not self.is_closed:
            self._close()

    # Receiving

    def _parse(self, data: bytes | memoryview) -> None:
        rest = self._feed_parser(data)
        while rest and self._discarded_bytes is None and not self.is_closed:
            rest = self._feed_parser(rest)
        request = self._incoming
        if request is not None and not request.is_complete and request is self._current:
            self._set_receive_deadline(request)

    def _set_receive_deadline(self, request: HttpRequest) -> None:
        if not request.has_responded and self._discarded_bytes is None:
            max_seconds = MIN_RATE_GRACE_SECONDS + request.received_bytes / _MIN_BYTES_PER_SECOND
            receive_by = self._started_at + min(RECEIVE_TIMEOUT_SECONDS, max_seconds)
            self._deadline = min(receive_by, self._loop.time() + STALL_TIMEOUT_SECONDS)

    def _feed_parser(self, data: bytes | memoryview) -> bytes | memoryview:
        """Parse data. Return the data after a head with an ignored protocol upgrade, or b''."""
        self._has_begun = False
        self._body_bytes = 0
        rest = None
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            rest = memoryview(data)[upgrade.args[0] :]
        except httptools.HttpParserError as error:
            reason = error.__context__
            self._reject_malformed(str(reason) if isinstance(reason, InvalidHeadError) else None)
        else:
            if self._has_begun:
                self._overhead_bytes = 0
            else:
                # The parser buffers head and trailer lines without a limit.
                self._overhead_bytes = max(
                    0, self._overhead_bytes + len(data) - 2 * self._body_bytes
                )
                if self._overhead_bytes > MAX_OVERHEAD_BYTES:
                    self._reject_malformed()
        return b"" if rest is None else self.ignore_upgrade(rest)

    def on_message_begin(self) -> None:
        self._has_begun = True
        self._url = b""
        self._headers = {}
        self._head_size = 0
        self._incoming = None
        if self._current is None:
            self._deadline = self._loop.time() + HEAD_TIMEOUT_SECONDS

    def on_url(self, url: bytes) -> None:
        self._url += url
        if len(self._url) > MAX_TARGET_BYTES:
            raise InvalidHeadError("The request target is too long.")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_size += len(name) + len(value) + FIELD_OVERHEAD_BYTES
        if self._head_size > MAX_HEAD_BYTES:
            raise InvalidHeadError("The request headers are too large.")
        if self._incoming is None:  # otherwise a trailer, which only counts toward the size
            name = name.lower()
            if name in self._headers:
                add_header(self._headers, name, value)
            else:
                self._headers[name] = value

    def on_headers_complete(self) -> None:
        parser = self._parser
        if parser.should_upgrade() and parser.get_method() != b"CONNECT":
            return  # `_ignore_upgrade` handles it
        if self._is_http_1_0 is None:
            self._is_http_1_0 = parser.get_http_version() == "1.0"
        host = self._headers.get(b"host")
        if host is None or host != self._host:
            require_host(host, is_http_1_0=self._is_http_1_0)
            self._host = host
        keep_alive = not self._is_http_1_0 and parser.should_keep_alive()
        path, query = split_target(self._url)
        method = parser.get_method().decode("latin-1")
        request = HttpRequest(self, method, path, query, self._headers, self._peer, keep_alive)
        self._incoming = request
        if self._can_start:
            self._start(request)
        else:
            self.pipelined.append(request)
            if (
                len(self.pipelined) > MAX_PIPELINED_REQUESTS
                or self._head_size + len(self._url) > _MAX_QUEUED_HEAD_BYTES
            ):
                self._pause_reading()

    def on_body(self, body: bytes) -> None:
        request = self._incoming
        assert request is not None
        held = request.held_bytes
        request.append_body(body)
        self._body_bytes += len(body)
        self.held_bytes += request.held_bytes - held
        if request.has_responded:
            if request.received_bytes > connection.LINGER_BYTES:
                self._close()
            return
        if self.held_bytes > FREE_BODY_BYTES and not self._charge_budget():
            request.reject_overloaded()
        if request.received_bytes > _MAX_UNREAD_BODY_BYTES and not request.is_reading_body:
            self._pause_reading()

    def on_message_complete(self) -> None:
        request = self._incoming
        if request is None:  # a protocol upgrade, see `_ignore_upgrade`
            return
        request.is_complete = True
        request.wake_reader()
        if request.has_responded:
            self._close()
        elif request is self._current:
            # Only a connection with a request in progress has no deadline. The deadline remains
            # while requests are queued because the client does not read earlier responses.
            self._deadline = NO_DEADLINE

    def ignore_upgrade(self, rest: memoryview) -> bytes | memoryview:
        """Ignore a protocol upgrade, such as the `h2c` that Java's HTTP client offers.

        The head is parsed again without the upgrade. The data after the head is returned for the
        caller to parse rather than parsed recursively, because thousands of such requests may be
        pipelined. After CONNECT, all further data is ignored.
        """
        method = self._parser.get_method()
        if method == b"CONNECT":
            self._stop_reading_requests()
            return b""
        version = self._parser.get_http_version().encode()
        head = encode_without_upgrade(method, self._url, version, self._headers)
        self._parser = httptools.HttpRequestParser(self)
        self._feed_parser(head)
        return rest

    def _stop_reading_requests(self) -> None:
        self._is_draining = True
        self._pause_reading()

    def _reject_malformed(self, message: str | None = None) -> None:
        """Send 400 and close.

        If a complete request is in progress, send no 400. The connection then closes after the
        responses to that request and to the pipelined requests.
        """
        self._is_draining = True
        current = self._current
        if current is not None and current.is_complete:
            self._pause_reading()
            return
        if current is None or not current.has_responded:
            error = ApiError(Code.INVALID_REQUEST, message or "The request is not valid HTTP/1.1.")
            response = self.app.render_error(error)
            traced_response = response._replace(
                head=response.head + encode_header("x-request-id", secrets.token_hex(8))
            )
            self.transport.write(
                encode_response(traced_response, self._server.default_headers, keep_alive=False)
            )
        # A client that is still sending would lose the response if the connection closed now.
        self._discarded_bytes = 0
        self._drop_backlog()
        self._deadline = self._loop.time() + connection.LINGER_SECONDS
        if not self.transport.is_closing():
            self.transport.write_eof()
            self._resume_reading()

    # Sending

    def resume_body(self, request: HttpRequest) -> None:
        """Receive more body data. Send 100 Continue first if the client expects it."""
        if not request.has_requested_body:
            request.has_requested_body = True
            self._set_receive_deadline(request)
            if b"expect" in request.headers:
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._resume_reading()

    async def _send_response(self, request: HttpRequest, response: Response) -> None:
        stays_open = not self._is_draining or bool(self.pipelined)
        keep_alive = stays_open and request.keep_alive and request.is_complete
        if request.method == "HEAD":
            response = response._replace(body=b"")
        if response.stream is not None or len(response.body) > connection.CHUNK_BYTES:
            await self._send_large_response(request, response, keep_alive=keep_alive)
            return
        data = encode_response(response, self._server.default_headers, keep_alive=keep_alive)
        self._end_response(request, response, data, keep_alive=keep_alive)

    async def _send_large_response(
        self, request: HttpRequest, response: Response, *, keep_alive: bool
    ) -> None:
        head = response._replace(body=b"")
        data = encode_response(head, self._server.default_headers, keep_alive=keep_alive)
        try:
            if request.method != "HEAD" and not self.is_closed:
                self.transport.write(data)
                data = b""
                await self._write_large_body(response.body)
                if response.stream is not None:
                    await self._write_stream(response.stream)
        finally:
            if response.stream is not None:
                response.stream.close()
        self._end_response(request, response, data, keep_alive=keep_alive)

    def _end_response(
        self, request: HttpRequest, response: Response, data: bytes, *, keep_alive: bool
    ) -> None:
        """Write the rest of a response and continue with the next request."""
        request.has_responded = True
        self.held_bytes -= request.held_bytes
        request.held_bytes = 0
        request.discard_body()
        if self._charged_bytes:
            self._charge_budget()
        if self.is_closed:
            return
        self.transport.write(data)
        if keep_alive:
            self._current = None
            self._deadline = self._loop.time() + connection.IDLE_TIMEOUT_SECONDS
            if response.pause:
                self._pause_reading_for(response.pause)
            else:
                self._continue_reading()
        elif request.is_complete:
            self._close()
        else:
            request.received_bytes = 0
            self._deadline = self._loop.time() + connection.LINGER_SECONDS
            self._resume_reading()

    def _continue_reading(self) -> None:
        self._start_next()
        self._read_more_requests()

    def _read_more_requests(self) -> None:
        """Resume reading, which a large body or many pipelined requests may have paused."""
        if not self._is_draining and len(self.pipelined) < MAX_PIPELINED_REQUESTS:
            self._resume_reading()

    @property
    def _can_start(self) -> bool:
        return self._current is None and self._can_write and self._pause_timer is None

    def _start_next(self) -> None:
        if self.pipelined and self._can_start:
            self._start(self.pipelined.popleft())
            self._read_more_requests()

    def _start(self, request: HttpRequest) -> None:
        self._current = request
        self._started_at = self._loop.time()
        if request.is_complete:
            self._deadline = NO_DEADLINE
        request.task = self._loop.create_task(self._handle_request(request))
        self._server.tasks.add(request.task)

    async def _handle_request(self, request: HttpRequest) -> None:
        try:
            await self._send_response(request, await self.app.respond(request))
        except ClientDisconnectedError:
            pass
        except Exception as error:
            _log.error("http.response_failed", failure=logs.describe_exception(error))
        self._server.tasks.discard(request.task)
        if not request.has_responded:
            self.transport.abort()
