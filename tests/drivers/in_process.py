"""In-process clients for an application, without sockets."""

import asyncio
from collections.abc import AsyncIterable, Awaitable
from typing import TypeVar, cast

import httpx2

from harness import BearerAuth, Harness
from tapgate.http.api.services import Services
from tapgate.http.http_messages import Application, Response, add_header
from tapgate.server.gateway import create_app
from tapgate_client import (
    AccessToken,
    AsyncTapgateClient,
    Credential,
    Login,
    RetryPolicy,
    ServiceSecret,
    TapgateClient,
)
from tapgate_client.errors import ApiError, Code

T = TypeVar("T")


class InProcessRequest:
    """In-process `tapgate.http.http_messages.Request`. A body is received when it is read."""

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

    async def cancel_on_disconnect(self, work: Awaitable[T]) -> T:
        return await work


class AppTransport(httpx2.AsyncBaseTransport):
    def __init__(self, app: Application, peer: str = "127.0.0.1") -> None:
        self._app = app
        self._peer = peer

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._app.respond(InProcessRequest(request, self._peer))
        if response.stream is not None:
            body = b"".join([chunk async for chunk in response.stream])
            response.stream.close()
            response = response._replace(body=body)
        return decode_response(response, request.method)


def decode_response(response: Response, method: str) -> httpx2.Response:
    lines = [line.partition(b": ") for line in response.head.split(b"\r\n")[:-1]]
    return httpx2.Response(
        response.status,
        headers=[(name, value) for name, _, value in lines],
        stream=httpx2.ByteStream(b"" if method == "HEAD" else response.body),
    )


GATEWAY_URL = "http://gateway"

#: The default retry policy without backoff delays.
NO_BACKOFF = RetryPolicy(initial_delay=0.0, max_delay=0.0)


class ThreadBridgeTransport(httpx2.BaseTransport):
    """Sync transport that forwards requests to an application in another thread's event loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, transport: httpx2.AsyncBaseTransport
    ) -> None:
        self._loop = loop
        self._transport = transport

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        async def forward() -> httpx2.Response:
            response = await self._transport.handle_async_request(request)
            return httpx2.Response(
                response.status_code, headers=response.headers, content=await response.aread()
            )

        return asyncio.run_coroutine_threadsafe(forward(), self._loop).result()


class ClientFactory:
    """Creates clients of one gateway for each kind of credential."""

    def __init__(self, services: Services, harness: Harness) -> None:
        self.harness = harness
        self.services = services
        self.transport = AppTransport(create_app(services))
        self.secret = ServiceSecret("messenger", services.settings.service_secrets["messenger"])

    def create_async(self, credential: Credential | Login | None = None) -> AsyncTapgateClient:
        return AsyncTapgateClient(GATEWAY_URL, credential, http=self.transport, retries=NO_BACKOFF)

    def create_sync(self, credential: Credential | Login | None = None) -> TapgateClient:
        """Create a client for use in a thread other than the event loop's."""
        transport = ThreadBridgeTransport(asyncio.get_running_loop(), self.transport)
        return TapgateClient(GATEWAY_URL, credential, http=transport, retries=NO_BACKOFF)

    def create_for_service(self) -> AsyncTapgateClient:
        return self.create_async(self.secret)

    async def create_for_admin(self, role: str = "A") -> AsyncTapgateClient:
        return self.create_async(self.get_token(await self.harness.create_admin(role)))

    def get_token(self, admin: BearerAuth) -> AccessToken:
        return AccessToken(admin.credential)
