"""HTTP transport that passes a client's requests to an application in this process."""

from collections.abc import AsyncIterable
from typing import cast

import httpx2

from tapgate.errors import ApiError, Code
from tapgate.http.messages import Application, Response, add_header


class InProcessRequest:
    """Implementation of `tapgate.http.messages.Request`. A body is received when it is read."""

    def __init__(self, request: httpx2.Request, peer: str) -> None:
        self._stream = cast(AsyncIterable[bytes], request.stream)
        self.method = request.method
        self.path = request.url.raw_path.partition(b"?")[0].decode("latin-1")
        self.query = request.url.query
        self.headers: dict[bytes, bytes] = {}
        for name, value in request.headers.raw:
            add_header(self.headers, name.lower(), value)
        self.peer = peer
        self.is_complete = not {b"content-length", b"transfer-encoding"} & self.headers.keys()

    async def read_body(self, limit: int) -> bytes:
        body = bytearray()
        async for chunk in self._stream:
            body += chunk
            if len(body) > limit:
                raise ApiError(Code.PAYLOAD_TOO_LARGE)
        return bytes(body)


class AppTransport(httpx2.AsyncBaseTransport):
    def __init__(self, app: Application, peer: str = "127.0.0.1") -> None:
        self._app = app
        self._peer = peer

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._app.respond(InProcessRequest(request, self._peer))
        return decode_response(response, request.method)


def decode_response(response: Response, method: str) -> httpx2.Response:
    lines = [line.partition(b": ") for line in response.head.split(b"\r\n")[:-1]]
    return httpx2.Response(
        response.status,
        headers=[(name, value) for name, _, value in lines],
        stream=httpx2.ByteStream(b"" if method == "HEAD" else response.body),
    )
