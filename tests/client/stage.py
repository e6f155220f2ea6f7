"""The gateway as a client sees it: the whole application, without a socket in between."""

import asyncio

import httpx2

from tapgate.client import (
    AccessToken,
    AsyncTapgateClient,
    Credential,
    Login,
    RetryPolicy,
    ServiceSecret,
    TapgateClient,
)
from tapgate.edge.services import Services
from tapgate.gateway import create_app
from world import Bearer, World

URL = "http://gateway"

#: The real rules with pauses that are not waited for.
AT_ONCE = RetryPolicy(initial_delay=0.0, max_delay=0.0)


class Across(httpx2.BaseTransport):
    """Carries a thread's request to an application that lives in an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, there: httpx2.AsyncBaseTransport) -> None:
        self._loop = loop
        self._there = there

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        async def carry() -> httpx2.Response:
            answer = await self._there.handle_async_request(request)
            return httpx2.Response(
                answer.status_code, headers=answer.headers, content=await answer.aread()
            )

        return asyncio.run_coroutine_threadsafe(carry(), self._loop).result()


class Stage:
    """Clients of one gateway, by what they call with."""

    def __init__(self, services: Services, world: World) -> None:
        self.world = world
        self.services = services
        self.transport = httpx2.ASGITransport(create_app(services))
        self.secret = ServiceSecret("messenger", services.settings.service_secrets["messenger"])

    def awaited(self, credential: Credential | Login | None = None) -> AsyncTapgateClient:
        return AsyncTapgateClient(URL, credential, http=self.transport, retries=AT_ONCE)

    def waiting(self, credential: Credential | Login | None = None) -> TapgateClient:
        """For a thread other than the event loop's."""
        across = Across(asyncio.get_running_loop(), self.transport)
        return TapgateClient(URL, credential, http=across, retries=AT_ONCE)

    def service(self) -> AsyncTapgateClient:
        return self.awaited(self.secret)

    async def admin(self, role: str = "A") -> AsyncTapgateClient:
        return self.awaited(self.token(await self.world.admin(role)))

    def token(self, admin: Bearer) -> AccessToken:
        return AccessToken(admin._credential)
