"""Requests to the identity provider, bounded in time and size."""

import asyncio
from collections.abc import Mapping
from typing import Final, TypeVar

import httpx2
import msgspec

from tapgate.runtime.bounded_responses import read_body
from tapgate_client.tls import get_tls_context_for

MAX_RESPONSE_BYTES: Final = 256 * 1024
TIMEOUT_SECONDS: Final = 5.0
_OK: Final = 200

T = TypeVar("T")


class ProviderError(Exception):
    """The identity provider is not available or sent an invalid response."""


class RequestRejectedError(ProviderError):
    """The identity provider responded with an error status."""


async def fetch_json(
    method: str,
    url: str,
    response_type: type[T],
    *,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> T:
    """Send a request and decode the response. Redirects are not followed."""
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            status, body = await _send(method, url, form, headers or {})
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, OSError) as error:
        raise ProviderError(type(error).__name__) from None
    if status != _OK:
        raise RequestRejectedError(f"status {status}")
    try:
        return msgspec.json.decode(body, type=response_type)
    except (ValueError, RecursionError):
        raise ProviderError("invalid response") from None


async def _send(
    method: str, url: str, form: Mapping[str, str] | None, headers: Mapping[str, str]
) -> tuple[int, bytes]:
    async with (
        httpx2.AsyncClient(
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
            # A provider in the operator's own network often has a certificate from a private
            # authority, which SSL_CERT_FILE names.
            verify=get_tls_context_for(url, trust_env=True),
        ) as client,
        client.stream(
            method,
            url,
            data=None if form is None else dict(form),
            # An encoded response could be much larger than its encoding.
            headers={"Accept": "application/json", "Accept-Encoding": "identity", **headers},
        ) as response,
    ):
        return response.status_code, await read_body(response, MAX_RESPONSE_BYTES)
