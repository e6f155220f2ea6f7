"""The messenger's requests to a gateway in process."""

import httpx2

from tapgate_client import NO_RETRIES, AsyncTapgateClient, ServiceSecret


def open_gateway(transport: httpx2.AsyncBaseTransport, secret: str) -> AsyncTapgateClient:
    credential = ServiceSecret("messenger", secret)
    return AsyncTapgateClient("http://gateway", credential, retries=NO_RETRIES, http=transport)


class UnreachableTransport(httpx2.AsyncBaseTransport):
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("unreachable")
