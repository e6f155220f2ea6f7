"""One POST to one endpoint, to exactly the address that was checked."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

import httpx2

from tapgate import VERSION
from tapgate.notifications.webhooks.targets import (
    RefusedError,
    Resolve,
    addresses,
    require_public,
    resolve_by_system,
)

#: How long an endpoint may take to respond with a status, everything included.
PATIENCE_SECONDS: Final = 10.0
#: How long it may then take to send the part of the body that is kept.
_BODY_SECONDS: Final = 2.0
#: How long one of several addresses may take to be connected to.
_CONNECT_SECONDS: Final = 3.0
_MOST_ADDRESSES: Final = 4
MAX_RESPONSE_BYTES: Final = 1024

_BEFORE_WRITE: Final = "http11.send_request_headers.started"

#: Called when a connection is open and nothing has been written to it. An exception cancels.
BeforeWrite = Callable[[], Awaitable[None]]


class Response(NamedTuple):
    status: int
    duration_ms: int  # until the status
    text: str | None  # how the body begins
    retry_after: str | None


class NoAnswerError(Exception):
    """The endpoint sent no HTTP response. The message is one word, the kind of error."""

    def __init__(self, problem: str, duration_ms: int) -> None:
        super().__init__(problem)
        self.duration_ms = duration_ms


async def _always() -> None:
    """Cancel nothing."""


class Sender:
    """HTTP client that follows no redirects, uses no proxy and verifies the host's certificate."""

    def __init__(
        self,
        *,
        public_only: bool,
        resolve: Resolve = resolve_by_system,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self._find = require_public if public_only else addresses
        self._resolve = resolve
        self._trust = trust or httpx2.create_ssl_context(trust_env=False)

    async def send(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        before_write: BeforeWrite = _always,
    ) -> Response:
        """Return the status and how the body begins; the rest of the body is not read."""
        request = _Request(url, headers, body, before_write, time.monotonic())
        try:
            async with asyncio.timeout(PATIENCE_SECONDS) as deadline:
                found = await self._find(url, self._resolve)
                return await self._to_one_of(found, request, deadline)
        except (RefusedError, httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise NoAnswerError(type(error).__name__, request.elapsed_ms()) from error

    async def _to_one_of(
        self, found: list[str], request: "_Request", deadline: asyncio.Timeout
    ) -> Response:
        """Try the next address only where nothing was sent: the connection failed."""
        *others, last = found[:_MOST_ADDRESSES]
        for address in others:
            try:
                return await self._post(address, request, deadline)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await self._post(last, request, deadline)

    async def _post(self, address: str, request: "_Request", deadline: asyncio.Timeout) -> Response:
        named = httpx2.URL(request.url)
        # A client for one request: a connection made for one host name is never used for another
        # one at the same address.
        async with (
            httpx2.AsyncClient(
                verify=self._trust,
                trust_env=False,
                follow_redirects=False,
                timeout=httpx2.Timeout(PATIENCE_SECONDS, connect=_CONNECT_SECONDS),
            ) as client,
            client.stream(
                "POST",
                named.copy_with(host=address, fragment=None),
                content=request.body,
                headers={
                    "User-Agent": f"Tapgate/{VERSION}",
                    "Connection": "close",
                    "Accept-Encoding": "identity",  # the body is kept as it is, not decompressed
                    **request.headers,
                    "Host": named.netloc.decode("ascii"),
                },
                extensions={
                    # The name that the certificate must be for, which never has a final dot.
                    "sni_hostname": named.host.removesuffix("."),
                    "trace": request.trace,
                },
            ) as response,
        ):
            # The status decides whether the attempt succeeded, however slow the body is.
            deadline.reschedule(asyncio.get_running_loop().time() + 2 * _BODY_SECONDS)
            duration_ms = request.elapsed_ms()
            return Response(
                response.status_code,
                duration_ms,
                await _read_start(response),
                response.headers.get("retry-after"),
            )


class _Request(NamedTuple):
    url: str
    headers: Mapping[str, str]
    body: bytes
    before_write: BeforeWrite
    started: float

    def elapsed_ms(self) -> int:
        return round((time.monotonic() - self.started) * 1000)

    async def trace(self, event: str, _info: Mapping[str, Any]) -> None:
        if event == _BEFORE_WRITE:
            await self.before_write()


async def _read_start(response: httpx2.Response) -> str | None:
    """Return how the body begins: at most MAX_RESPONSE_BYTES, and what arrives in time."""
    found = bytearray()
    with contextlib.suppress(TimeoutError, httpx2.HTTPError):
        async with asyncio.timeout(_BODY_SECONDS):
            async for chunk in response.aiter_raw():
                found += chunk[: MAX_RESPONSE_BYTES - len(found)]
                if len(found) == MAX_RESPONSE_BYTES:
                    break
    return decode_start(found)


def decode_start(body: bytes | bytearray) -> str | None:
    """Return text that PostgreSQL can store, of at most MAX_RESPONSE_BYTES in UTF-8."""
    text = body.decode(errors="replace").replace("\0", "")
    # A replacement character is longer than the byte that it stands for.
    return text.encode()[:MAX_RESPONSE_BYTES].decode(errors="ignore") or None
