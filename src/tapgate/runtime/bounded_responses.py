"""Responses of other servers, read completely and bounded in size and time.

Whoever runs the other server may be dishonest: without a bound, one response could take all memory,
and one that never ends could hold a request open.
"""

import asyncio

import httpx2


class ResponseTooLargeError(httpx2.RemoteProtocolError):
    """The body is longer than allowed, or encoded: decoding could make it any length."""


async def read_body(response: httpx2.Response, limit: int) -> bytes:
    """Return the body of a streamed response, or raise `ResponseTooLargeError`."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise ResponseTooLargeError("The response is encoded.")
    body = bytearray()
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    async for chunk in response.stream:
        body += chunk
        if len(body) > limit:
            raise ResponseTooLargeError(f"The response is longer than {limit} bytes.")
    return bytes(body)


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Transport that fails requests whose complete response is too large or takes too long."""

    def __init__(
        self, transport: httpx2.AsyncBaseTransport, *, max_bytes: int, max_seconds: float
    ) -> None:
        self._transport = transport
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["Accept-Encoding"] = "identity"
        try:
            async with asyncio.timeout(self._max_seconds):
                response = await self._transport.handle_async_request(request)
                try:
                    body = await read_body(response, self._max_bytes)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise httpx2.ReadTimeout("The response took too long.", request=request) from None
        return httpx2.Response(
            response.status_code, headers=response.headers, content=body, request=request
        )

    async def aclose(self) -> None:
        await self._transport.aclose()
