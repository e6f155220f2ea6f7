"""Webhook receiver that gets an event for every payment and discards it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from tapgate import ids
from tapgate.api.services import Services
from tapgate.sandbox.demo.seed import build_request_context
from tapgate.schemas.webhooks import NewWebhookEndpoint
from tapgate.webhooks import operations as webhooks

_RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@contextlib.asynccontextmanager
async def receive_webhooks(services: Services) -> AsyncIterator[None]:
    server = await asyncio.start_server(_respond, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    request = build_request_context(services)
    async with server:
        new_endpoint = NewWebhookEndpoint(
            url=f"http://127.0.0.1:{port}/events", events=["transaction.completed"]
        )
        created = await webhooks.create(request, new_endpoint)
        try:
            yield
        finally:
            endpoint_id = ids.decode(ids.WEBHOOK_ENDPOINT, created.id)
            assert endpoint_id is not None
            await webhooks.delete(request, endpoint_id)


async def _respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(_RESPONSE)
        await writer.drain()
        writer.close()
        await writer.wait_closed()
