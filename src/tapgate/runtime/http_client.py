"""HTTP/1.1 client for webhooks and messages, with persistent connections.

A connection belongs to one scheme, host name, port and address. For webhooks, it is reused only for
requests to the same host name after the same address has been checked again. The client follows no
redirects, uses no proxy, reads at most the start of a response body, and bounds the size of
response headers.
"""

import asyncio
import contextlib
import ssl
import time
from collections import deque
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple, cast

import httptools
import httpx2

from tapgate_client.tls import get_tls_context

MAX_RESPONSE_BYTES: Final = 1024
_MAX_HEAD_BYTES: Final = 65_536
_MAX_IDLE_PER_TARGET: Final = 10
#: Shorter than common servers' keep-alive timeouts, so that few requests use a connection
#: that the server is closing.
MAX_IDLE_SECONDS: Final = 4.0
_SWITCHING_PROTOCOLS: Final = 101
_FIRST_FINAL_STATUS: Final = 200


class ConnectError(Exception):
    """No connection to the address could be opened. Nothing was sent."""


class RemoteProtocolError(Exception):
    """The server sent an invalid response or closed the connection without a response."""


class ConnectionReset(RemoteProtocolError):  # noqa: N818 - logged under this name
    """The server closed the connection before the first response byte."""


class Target(NamedTuple):
    """Where a URL points to, as used in requests and TLS handshakes."""

    is_tls: bool
    server_name: str  # the name in the certificate, without a trailing dot
    port: int
    host_header: str
    path: str  # with the query


@lru_cache(maxsize=1024)
def parse_target(url: str) -> Target:
    parsed = httpx2.URL(url)
    is_tls = parsed.scheme == "https"
    return Target(
        is_tls=is_tls,
        # Not `host`, which is decoded: the TLS library would encode some names differently.
        server_name=parsed.raw_host.decode("ascii").removesuffix("."),
        port=parsed.port or (443 if is_tls else 80),
        host_header=parsed.netloc.decode("ascii"),
        path=parsed.raw_path.decode("ascii"),
    )


class Connection(asyncio.Protocol):
    """Connection that handles one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._head: asyncio.Future[int] | None = None
        self._body_end: asyncio.Future[None] | None = None
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._received_bytes = 0
        self._status = 0
        self._is_complete = True
        self._is_closed = False
        self.idle_since = 0.0
        self.retry_after: str | None = None
        self.body = bytearray()

    @property
    def is_usable(self) -> bool:
        return not self._is_closed and self._is_complete

    @property
    def is_body_complete(self) -> bool:
        return self._is_complete or self._is_closed or len(self.body) >= MAX_RESPONSE_BYTES

    async def send(self, request: bytes, *, timeout_seconds: float) -> int:
        """Send a request and return the response status."""
        if self._is_closed or self._transport is None:
            raise ConnectionReset
        self._received_bytes = self._status = 0
        self._is_complete = False
        self.retry_after = None
        self.body.clear()
        loop = asyncio.get_running_loop()
        self._head = loop.create_future()
        self._deadline = loop.time() + timeout_seconds
        # A timer for each request would cost more than the rest of the request.
        if self._timer is None or self._timer.when() > self._deadline:
            self._set_timer(loop)
        self._transport.write(request)
        return await self._head

    def _set_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(self._deadline, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        if self._head is None or self._head.done():
            return
        loop = asyncio.get_running_loop()
        if loop.time() < self._deadline:  # belongs to a later request than the timer
            self._set_timer(loop)
        else:
            self.expire()

    def expire(self) -> None:
        """End the request because its timeout has passed."""
        self._fail(TimeoutError())

    async def wait_for_body(self) -> None:
        """Wait until the body is complete, or as much of it as is stored has been received."""
        if not self.is_body_complete:
            self._body_end = asyncio.get_running_loop().create_future()
            await self._body_end

    def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._is_complete:  # no request is in progress
            self.close()
            return
        self._received_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._on_status(_SWITCHING_PROTOCOLS)
            self._end(is_reusable=False)
        except httptools.HttpParserError:
            self._fail(RemoteProtocolError())
        else:
            # After the status, this bounds chunk extensions and trailers and only ends the body.
            if not self._is_complete and self._received_bytes > _MAX_HEAD_BYTES:
                self._fail(RemoteProtocolError())

    def eof_received(self) -> bool:
        return False  # close the transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closed = True
        error = RemoteProtocolError() if self._received_bytes else ConnectionReset()
        self._fail(error)

    # httptools callbacks

    def on_message_begin(self) -> None:
        if self._is_complete:  # more than one response to a request
            self.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"retry-after":
            self.retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= _FIRST_FINAL_STATUS:  # others are informational
            self._on_status(status)
        else:
            self.retry_after = None

    def on_body(self, body: bytes) -> None:
        self.body += body[: MAX_RESPONSE_BYTES - len(self.body)]
        if len(self.body) >= MAX_RESPONSE_BYTES:
            self._resolve_body()

    def on_message_complete(self) -> None:
        if self._status:
            self._end(is_reusable=self._parser.should_keep_alive())

    def _on_status(self, status: int) -> None:
        self._status = status
        if self._head is not None and not self._head.done():
            self._head.set_result(status)

    def _end(self, *, is_reusable: bool) -> None:
        self._is_complete = True
        self._resolve_body()
        if not is_reusable:
            self.close()

    def _fail(self, error: Exception) -> None:
        """End the request. After the status, a failure only ends the body."""
        if self._head is not None and not self._head.done():
            self._head.set_exception(error)
        self._resolve_body()
        self.close()

    def _resolve_body(self) -> None:
        if self._body_end is not None and not self._body_end.done():
            self._body_end.set_result(None)


_PoolKey = tuple[bool, str, int, str]


class ConnectionPool:
    """Keeps idle connections and opens new ones."""

    def __init__(self, ssl_context: ssl.SSLContext | None = None) -> None:
        self._ssl_context = ssl_context
        self._idle: dict[_PoolKey, deque[Connection]] = {}

    def take(self, target: Target, address: str) -> Connection | None:
        """Return an idle connection to a checked address, or None."""
        idle = self._idle.get(_get_key(target, address))
        while idle:
            connection = idle.pop()  # the most recently used
            if connection.is_usable and not _is_expired(connection):
                return connection
            connection.close()
        return None

    async def connect(self, target: Target, address: str, *, timeout_seconds: float) -> Connection:
        """Open a connection to a checked address."""
        try:
            async with asyncio.timeout(timeout_seconds):
                _, connection = await asyncio.get_running_loop().create_connection(
                    Connection,
                    address,
                    target.port,
                    ssl=(self._ssl_context or get_tls_context()) if target.is_tls else None,
                    server_hostname=target.server_name if target.is_tls else None,
                )
        except (OSError, ssl.CertificateError) as error:  # includes timeouts and TLS errors
            raise ConnectError from error
        return connection

    def release(self, target: Target, address: str, connection: Connection) -> None:
        """Keep a connection for later requests, or close it if it cannot be reused."""
        key = _get_key(target, address)
        idle = self._idle.get(key)
        if idle is None:
            idle = self._idle[key] = deque()
        if not connection.is_usable or len(idle) >= _MAX_IDLE_PER_TARGET:
            connection.close()
            return
        connection.idle_since = time.monotonic()
        idle.append(connection)

    def close_idle(self, *, only_expired: bool = False) -> None:
        for key, idle in list(self._idle.items()):
            while idle and (not only_expired or _is_expired(idle[0])):
                idle.popleft().close()
            if not idle:
                del self._idle[key]


class Response(NamedTuple):
    status_code: int


class HttpClient:
    """Client for trusted services, whose addresses are not checked.

    Requests must be idempotent: if the server closes an idle connection, the request is repeated on
    a new one.
    """

    def __init__(self, *, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._pool = ConnectionPool()

    async def post(self, url: str, *, content: bytes, headers: Mapping[str, str]) -> Response:
        """Send a POST request and return the response, without its body."""
        target = parse_target(url)
        request = encode_request(target, headers, content)
        now = asyncio.get_running_loop().time
        deadline = now() + self._timeout_seconds
        connection = self._pool.take(target, target.server_name)
        if connection is not None:
            with contextlib.suppress(ConnectionReset):
                return await self._send(target, connection, request, deadline)
        connection = await self._pool.connect(
            target, target.server_name, timeout_seconds=deadline - now()
        )
        return await self._send(target, connection, request, deadline)

    async def _send(
        self, target: Target, connection: Connection, request: bytes, deadline: float
    ) -> Response:
        timeout_seconds = deadline - asyncio.get_running_loop().time()
        try:
            status = await connection.send(request, timeout_seconds=timeout_seconds)
            if not connection.is_body_complete:
                async with asyncio.timeout_at(deadline):
                    await connection.wait_for_body()
        finally:
            self._pool.release(target, target.server_name, connection)
        return Response(status)

    def close(self) -> None:
        """Close the idle connections."""
        self._pool.close_idle()


def _get_key(target: Target, address: str) -> _PoolKey:
    return target.is_tls, target.server_name, target.port, address


def _is_expired(connection: Connection) -> bool:
    return time.monotonic() - connection.idle_since > MAX_IDLE_SECONDS


def encode_request(target: Target, headers: Mapping[str, str], body: bytes) -> bytes:
    lines = [f"POST {target.path} HTTP/1.1", f"Host: {target.host_header}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) - 1:
        raise ValueError("a header contains a line break")
    return head.encode("ascii") + b"\r\n\r\n" + body
