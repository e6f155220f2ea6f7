"""Webhook and message receiver, which accepts everything and discards it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import cast

from tapgate.auth.actors import SYSTEM_ACTOR
from tapgate.events.webhooks import operations as webhooks
from tapgate.http.api.services import Services
from tapgate_client import ids
from tapgate_client.schemas.webhooks import NewWebhookEndpoint

_RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
_HEAD_END = b"\r\n\r\n"
_CONTENT_LENGTH = b"Content-Length: "


class _Receiver(asyncio.Protocol):
    """Connection that answers every request with 200 and stays open."""

    def __init__(self) -> None:
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (head_end := self._received.find(_HEAD_END)) >= 0:
            length_at = self._received.find(_CONTENT_LENGTH) + len(_CONTENT_LENGTH)
            length = int(self._received[length_at : self._received.find(b"\r", length_at)])
            end = head_end + len(_HEAD_END) + length
            if len(self._received) < end:
                return
            self._received = self._received[end:]
            self._transport.write(_RESPONSE)


@contextlib.asynccontextmanager
async def run_receiver() -> AsyncIterator[str]:
    """Run a receiver and yield its URL."""
    server = await asyncio.get_running_loop().create_server(_Receiver, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@contextlib.asynccontextmanager
async def receive_webhooks(services: Services) -> AsyncIterator[None]:
    """Run a receiver that gets an event for every completed transaction."""
    async with run_receiver() as url:
        new_endpoint = NewWebhookEndpoint(url=f"{url}/events", events=["transaction.completed"])
        async with services.transaction() as tx:
            created = await webhooks.create(
                tx, SYSTEM_ACTOR, new_endpoint, vault=services.vault, signals=services.signals
            )
        try:
            yield
        finally:
            endpoint_id = ids.decode(ids.WEBHOOK_ENDPOINT, created.id)
            assert endpoint_id is not None
            async with services.transaction() as tx:
                await webhooks.delete(tx, SYSTEM_ACTOR, endpoint_id, signals=services.signals)
