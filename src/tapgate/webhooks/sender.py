"""HTTP client for webhooks. In production, it connects only to public addresses."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

import httpx2

from tapgate import VERSION
from tapgate.schemas.urls import TargetRejectedError
from tapgate.webhooks.target_urls import (
    Resolver,
    require_public,
    resolve_addresses,
    resolve_with_system,
)

#: Timeout for receiving the response status, including name resolution and connecting.
RESPONSE_TIMEOUT_SECONDS: Final = 10.0
#: Timeout for reading the stored part of the response body, counted from the status.
_BODY_TIMEOUT_SECONDS: Final = 2.0
#: Timeout for connecting to one address.
_CONNECT_TIMEOUT_SECONDS: Final = 3.0
_MAX_ADDRESSES: Final = 4
MAX_RESPONSE_BYTES: Final = 1024

_BEFORE_WRITE_EVENT: Final = "http11.send_request_headers.started"

#: Called when a connection is open, before the request is written to it. If it raises, the request
#: is not sent.
BeforeWrite = Callable[[], Awaitable[None]]


class Response(NamedTuple):
    status: int
    duration_ms: int  # until the status
    text: str | None  # the start of the body
    retry_after: str | None


class NoResponseError(Exception):
    """No HTTP response was received. The message is the class name of the underlying error.

    The request may not have been sent at all, for example because the URL was rejected.
    """

    def __init__(self, problem: str, duration_ms: int) -> None:
        super().__init__(problem)
        self.duration_ms = duration_ms


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
        self._ssl_context = ssl_context or httpx2.create_ssl_context(trust_env=False)

    async def send(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        before_write: BeforeWrite = _do_nothing,
    ) -> Response:
        """Send a POST request and return the response; raise `NoResponseError` if none."""
        request = _Request(url, headers, body, before_write, time.monotonic())
        try:
            async with asyncio.timeout(RESPONSE_TIMEOUT_SECONDS) as deadline:
                addresses = await self._resolve_addresses(url, self._resolver)
                return await self._send_to_first_reachable(addresses, request, deadline)
        except (TargetRejectedError, httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise NoResponseError(type(error).__name__, request.get_elapsed_ms()) from error

    async def _send_to_first_reachable(
        self, addresses: list[str], request: "_Request", deadline: asyncio.Timeout
    ) -> Response:
        """Send to the first address that accepts a connection, trying up to four.

        The next address is tried only if connecting failed, because then nothing was sent.
        """
        *others, last = addresses[:_MAX_ADDRESSES]
        for address in others:
            try:
                return await self._post(address, request, deadline)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await self._post(last, request, deadline)

    async def _post(self, address: str, request: "_Request", deadline: asyncio.Timeout) -> Response:
        target = httpx2.URL(request.url)
        # One client per request: the URL contains the address, so a pooled connection could be
        # reused for a different host name at the same address.
        async with (
            httpx2.AsyncClient(
                verify=self._ssl_context,
                trust_env=False,
                follow_redirects=False,
                timeout=httpx2.Timeout(RESPONSE_TIMEOUT_SECONDS, connect=_CONNECT_TIMEOUT_SECONDS),
            ) as client,
            client.stream(
                "POST",
                target.copy_with(host=address, fragment=None),
                content=request.body,
                headers={
                    "User-Agent": f"Tapgate/{VERSION}",
                    "Connection": "close",
                    "Accept-Encoding": "identity",  # the body is stored without decompression
                    **request.headers,
                    "Host": target.netloc.decode("ascii"),
                },
                extensions={
                    # The host name of the certificate, which never has a trailing dot.
                    "sni_hostname": target.host.removesuffix("."),
                    "trace": request.trace,
                },
            ) as response,
        ):
            # The status alone decides whether the attempt succeeded, so a slow body must not hit
            # the response deadline.
            deadline.reschedule(asyncio.get_running_loop().time() + 2 * _BODY_TIMEOUT_SECONDS)
            duration_ms = request.get_elapsed_ms()
            return Response(
                response.status_code,
                duration_ms,
                await _read_body_prefix(response),
                response.headers.get("retry-after"),
            )


class _Request(NamedTuple):
    url: str
    headers: Mapping[str, str]
    body: bytes
    before_write: BeforeWrite
    started_at: float

    def get_elapsed_ms(self) -> int:
        return round((time.monotonic() - self.started_at) * 1000)

    async def trace(self, event: str, _info: Mapping[str, Any]) -> None:
        if event == _BEFORE_WRITE_EVENT:
            await self.before_write()


async def _read_body_prefix(response: httpx2.Response) -> str | None:
    """Return the start of the body: at most MAX_RESPONSE_BYTES, received before the timeout."""
    prefix = bytearray()
    with contextlib.suppress(TimeoutError, httpx2.HTTPError):
        async with asyncio.timeout(_BODY_TIMEOUT_SECONDS):
            async for chunk in response.aiter_raw():
                prefix += chunk[: MAX_RESPONSE_BYTES - len(prefix)]
                if len(prefix) == MAX_RESPONSE_BYTES:
                    break
    return decode_body_prefix(prefix)


def decode_body_prefix(body: bytes | bytearray) -> str | None:
    """Return text that PostgreSQL can store, at most MAX_RESPONSE_BYTES in UTF-8; None if empty."""
    text = body.decode(errors="replace").replace("\0", "")
    # A replacement character is longer than the byte it replaces.
    return text.encode()[:MAX_RESPONSE_BYTES].decode(errors="ignore") or None
