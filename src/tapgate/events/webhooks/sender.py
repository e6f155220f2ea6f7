"""Sends webhooks. In production, the sender connects only to public addresses."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple

import httpx2

from tapgate import VERSION
from tapgate.events.webhooks.target_urls import (
    HostNotFoundError,
    Resolver,
    require_public,
    resolve_addresses,
    resolve_with_system,
)
from tapgate.runtime.http_client import (
    MAX_RESPONSE_BYTES,
    ConnectError,
    Connection,
    ConnectionPool,
    ConnectionReset,
    RemoteProtocolError,
    Target,
    encode_request,
    parse_target,
)
from tapgate_client.schemas.urls import TargetRejectedError
from tapgate_client.schemas.webhooks import WebhookAttemptError

#: Timeout for receiving the response status, including name resolution and connecting.
RESPONSE_TIMEOUT_SECONDS: Final = 10.0
#: Timeout for reading the stored part of the response body, counted from the status.
BODY_TIMEOUT_SECONDS: Final = 2.0
#: Timeout for connecting to one address.
CONNECT_TIMEOUT_SECONDS: Final = 3.0
_MAX_ADDRESSES: Final = 4

_HEADERS: Final = {
    "User-Agent": f"Tapgate/{VERSION}",
    "Accept": "*/*",
    "Accept-Encoding": "identity",  # the body is stored without decompression
}

#: Called when a connection is open, before the request is written to it. If it raises, the request
#: is not sent.
BeforeWrite = Callable[[], Awaitable[None]]


class WebhookResponse(NamedTuple):
    status: int
    duration_ms: int  # until the status
    text: str | None  # the start of the body
    retry_after: str | None


class NoResponseError(Exception):
    """No HTTP response was received. The message is the underlying error's class name.

    The request may not have been sent at all, for example because the URL was rejected.
    """

    def __init__(self, error: Exception, duration_ms: int) -> None:
        super().__init__(type(error).__name__)
        self.reason = _classify(error)
        self.duration_ms = duration_ms


def _classify(error: BaseException) -> WebhookAttemptError:
    match error:
        case ConnectError() if error.__cause__ is not None:
            reason = _classify(error.__cause__)
        case TimeoutError():
            reason = WebhookAttemptError.TIMEOUT
        case ssl.SSLError():
            reason = WebhookAttemptError.TLS_FAILED
        case ConnectionRefusedError():
            reason = WebhookAttemptError.CONNECTION_REFUSED
        case HostNotFoundError():
            reason = WebhookAttemptError.HOST_NOT_FOUND
        case ConnectionReset():
            reason = WebhookAttemptError.CONNECTION_CLOSED
        case RemoteProtocolError():
            reason = WebhookAttemptError.INVALID_RESPONSE
        case TargetRejectedError() | httpx2.InvalidURL():
            reason = WebhookAttemptError.URL_REJECTED
        case _:
            reason = WebhookAttemptError.CONNECTION_FAILED
    return reason


async def _do_nothing() -> None:
    """Allow every request."""


class WebhookSender:
    """HTTP client that follows no redirects, uses no proxy and verifies the host's certificate."""

    def __init__(
        self,
        *,
        public_only: bool,
        resolve: Resolver = resolve_with_system,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._resolve_addresses = require_public if public_only else resolve_addresses
        self._resolver = resolve
        self._pool = ConnectionPool(ssl_context)

    def close_idle(self, *, only_expired: bool = False) -> None:
        """Close idle connections, or only those that were idle for too long."""
        self._pool.close_idle(only_expired=only_expired)

    async def send(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        before_write: BeforeWrite = _do_nothing,
    ) -> WebhookResponse:
        """Send a POST request and return the response; raise `NoResponseError` if none."""
        started_at = time.monotonic()
        try:
            addresses = await self._resolve_addresses(url, self._resolve_in_time)
            exchange = _Exchange(
                self._pool, parse_target(url), addresses[:_MAX_ADDRESSES], started_at
            )
            try:
                request = encode_request(exchange.target, {**_HEADERS, **headers}, body)
                status = await exchange.send(request, before_write)
                return await exchange.read_response(status, _get_elapsed_ms(started_at))
            finally:
                exchange.close()
        except (
            TargetRejectedError,
            ConnectError,
            RemoteProtocolError,
            httpx2.InvalidURL,
            OSError,
        ) as error:
            raise NoResponseError(error, _get_elapsed_ms(started_at)) from error

    async def _resolve_in_time(self, host: str) -> Sequence[str]:
        async with asyncio.timeout(RESPONSE_TIMEOUT_SECONDS):
            return await self._resolver(host)


class _Exchange:
    """One request and its response, on a connection to one of the checked addresses."""

    def __init__(
        self, pool: ConnectionPool, target: Target, addresses: list[str], started_at: float
    ) -> None:
        self.target = target
        self._pool = pool
        self._addresses = addresses
        self._started_at = started_at
        self._address = ""
        self._connection: Connection | None = None

    async def send(self, request: bytes, before_write: BeforeWrite) -> int:
        """Send the request and return the status, on an idle connection if there is one.

        The server may close an idle connection at any time. If it does so before responding, the
        request is repeated on a new connection; the receiver recognizes a duplicate by its ID.
        """
        connection = self._take_idle_connection()
        if connection is not None:
            await before_write()
            try:
                return await connection.send(request, timeout_seconds=self._get_seconds_left())
            except ConnectionReset:
                pass
        async with asyncio.timeout(self._get_seconds_left()):
            connection = await self._connect()
            await before_write()
        return await connection.send(request, timeout_seconds=self._get_seconds_left())

    async def read_response(self, status: int, duration_ms: int) -> WebhookResponse:
        """Read the start of the body.

        The status alone decides whether the attempt succeeded, so the body has its own timeout.
        """
        connection = self._connection
        assert connection is not None
        if not connection.is_body_complete:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
                    await connection.wait_for_body()
        return WebhookResponse(
            status, duration_ms, decode_body_prefix(connection.body), connection.retry_after
        )

    def close(self) -> None:
        """Keep the connection if the response is complete, otherwise close it."""
        if self._connection is not None:
            self._pool.release(self.target, self._address, self._connection)

    def _get_seconds_left(self) -> float:
        return self._started_at + RESPONSE_TIMEOUT_SECONDS - time.monotonic()

    def _take_idle_connection(self) -> Connection | None:
        for address in self._addresses:
            connection = self._pool.take(self.target, address)
            if connection is not None:
                self._address, self._connection = address, connection
                return connection
        return None

    async def _connect(self) -> Connection:
        """Connect to the first reachable address.

        The next address is tried only if connecting failed, because then nothing was sent.
        """
        *others, last = self._addresses
        for address in others:
            with contextlib.suppress(ConnectError):
                return await self._connect_to(address)
        return await self._connect_to(last)

    async def _connect_to(self, address: str) -> Connection:
        self._connection = await self._pool.connect(
            self.target, address, timeout_seconds=CONNECT_TIMEOUT_SECONDS
        )
        self._address = address
        return self._connection


def _get_elapsed_ms(started_at: float) -> int:
    return round((time.monotonic() - started_at) * 1000)


def decode_body_prefix(body: bytes | bytearray) -> str | None:
    """Return text that PostgreSQL can store, at most MAX_RESPONSE_BYTES in UTF-8; None if empty."""
    if not body:
        return None
    text = body.decode(errors="replace").replace("\0", "")
    # A replacement character is longer than the byte it replaces.
    return text.encode()[:MAX_RESPONSE_BYTES].decode(errors="ignore") or None
