"""In-process clients of the complete gateway, without sockets."""

import asyncio

import httpx2

from drivers.app_transport import AppTransport
from harness import BearerAuth, Harness
from tapgate.api.services import Services
from tapgate.client import (
    AccessToken,
    AsyncTapgateClient,
    Credential,
    Login,
    RetryPolicy,
    ServiceSecret,
    TapgateClient,
)
from tapgate.gateway import create_app

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
        return AccessToken(admin._credential)
