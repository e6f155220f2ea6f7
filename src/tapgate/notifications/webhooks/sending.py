"""One POST to one endpoint, to exactly the address that was checked."""

import asyncio
import ssl
from collections.abc import Mapping
from typing import Final

import httpx2

from tapgate import VERSION
from tapgate.notifications.webhooks.targets import (
    RefusedError,
    Resolve,
    addresses,
    require_public,
    resolve_by_system,
)

#: How long an endpoint may take to answer, everything included.
PATIENCE_SECONDS: Final = 10.0
#: How long one of several addresses may take to be connected to.
_CONNECT_SECONDS: Final = 3.0
_MOST_ADDRESSES: Final = 4


class NoAnswerError(Exception):
    """Nothing came back that is an answer; says what happened in a word."""


class Sender:
    """Follows no redirect, asks no proxy, believes nobody's certificate but the host name's."""

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

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> int:
        """The status of the answer; its body is not read."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await self._to_one_of(
                    await self._find(url, self._resolve), url, headers, body
                )
        except (RefusedError, httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise NoAnswerError(type(error).__name__) from error

    async def _to_one_of(
        self, found: list[str], url: str, headers: Mapping[str, str], body: bytes
    ) -> int:
        """An address that cannot be connected to was sent nothing: the next one may do."""
        *others, last = found[:_MOST_ADDRESSES]
        for address in others:
            try:
                return await self._post(address, url, headers, body)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await self._post(last, url, headers, body)

    async def _post(self, address: str, url: str, headers: Mapping[str, str], body: bytes) -> int:
        named = httpx2.URL(url)
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
                content=body,
                headers={
                    "User-Agent": f"Tapgate/{VERSION}",
                    "Connection": "close",
                    **headers,
                    "Host": named.netloc.decode("ascii"),
                },
                # The name that the certificate must be for; none is for a name with its final dot.
                extensions={"sni_hostname": named.host.removesuffix(".")},
            ) as answer,
        ):
            return answer.status_code
