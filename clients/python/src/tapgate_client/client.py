"""Client library entry points, synchronous and asynchronous."""

from typing import Final, Self

import httpx2

from tapgate_client.clock import Clock, system_clock
from tapgate_client.credentials import Credential, Login
from tapgate_client.declaration import AsyncMode, M, SyncMode, Transport
from tapgate_client.operations.all_operations import AllOperations
from tapgate_client.partner_webhooks import PartnerWebhooks
from tapgate_client.request_flow import RequestFlow
from tapgate_client.retries import RetryPolicy
from tapgate_client.transport import AsyncTransport, SyncTransport

_DEFAULT_RETRY_POLICY: Final = RetryPolicy()
#: Longer than the gateway takes to decide, shorter than a customer waits at a point of sale.
_DEFAULT_TIMEOUT_SECONDS: Final = 15.0


class BaseClient(AllOperations[M]):
    """All API operations, in one mode."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.partner_webhooks: PartnerWebhooks[M] = PartnerWebhooks(transport)


class TapgateClient(BaseClient[SyncMode]):
    """Synchronous gateway API client, safe to share between threads.

    `with TapgateClient("https://pay.example.com", ApiKey("svc_live_...")) as client: ...`

    `timeout` is the maximum time in seconds that an attempt waits for the network to send or
    receive data, but at most 5 seconds to connect. `http` replaces the HTTP transport.
    """

    def __init__(
        self,
        base_url: str,
        credential: Credential | Login | None = None,
        *,
        retries: RetryPolicy = _DEFAULT_RETRY_POLICY,
        timeout: float = _DEFAULT_TIMEOUT_SECONDS,
        http: httpx2.BaseTransport | None = None,
        clock: Clock = system_clock,
    ) -> None:
        flow = RequestFlow(base_url, credential, retries=retries, timeout=timeout, clock=clock)
        self.transport = SyncTransport(flow, http)
        super().__init__(self.transport)

    def close(self) -> None:
        self.transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncTapgateClient(BaseClient[AsyncMode]):
    """Asynchronous gateway API client.

    `async with AsyncTapgateClient(url, ServiceSecret("messenger", secret)) as client: ...`

    A client belongs to one event loop and may be shared by the tasks of that loop.
    """

    def __init__(
        self,
        base_url: str,
        credential: Credential | Login | None = None,
        *,
        retries: RetryPolicy = _DEFAULT_RETRY_POLICY,
        timeout: float = _DEFAULT_TIMEOUT_SECONDS,
        http: httpx2.AsyncBaseTransport | None = None,
        clock: Clock = system_clock,
    ) -> None:
        flow = RequestFlow(base_url, credential, retries=retries, timeout=timeout, clock=clock)
        self.transport = AsyncTransport(flow, http)
        super().__init__(self.transport)

    async def close(self) -> None:
        await self.transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
