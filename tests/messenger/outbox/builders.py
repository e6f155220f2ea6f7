"""Drivers for outbox tests: one for the queue, and one with a sender and a fake provider."""

from typing import Any

import asyncpg

from messenger.fake_clock import FakeClock
from tapgate.ids import IdGenerator
from tapgate.messenger.channel.graph import GraphClient
from tapgate.messenger.model.replies import OutgoingMessage, TextReply
from tapgate.messenger.outbox.operations import enqueue
from tapgate.messenger.outbox.sender import Sender
from tapgate.sandbox.fake_provider.provider import Provider, UserMessage
from tapgate.store.database import Database
from tapgate.vault import Vault

PHONE = "+23276123456"
OTHER_PHONE = "+23276000001"


class OutboxDriver:
    def __init__(self, database: Database, clock: FakeClock) -> None:
        self.database = database
        self.clock = clock
        self.vault = Vault("a secret key for the tests of the outbox")
        self.new_id = IdGenerator(1)

    async def enqueue(
        self, message: OutgoingMessage | str, address: str = PHONE, key: str | None = None
    ) -> tuple[int, bool]:
        async with self.database.transaction() as tx:
            return await self.enqueue_in(tx, message, address, key)

    async def enqueue_in(
        self,
        tx: asyncpg.Connection,
        message: OutgoingMessage | str,
        address: str = PHONE,
        key: str | None = None,
    ) -> tuple[int, bool]:
        return await enqueue(
            tx,
            self.vault,
            new_id=self.new_id,
            now=self.clock(),
            address=address,
            message=TextReply(text=message) if isinstance(message, str) else message,
            key=key,
        )

    async def list_rows(self) -> list[asyncpg.Record]:
        return await self.database.fetch("SELECT * FROM messenger.outbox ORDER BY id")

    async def list_statuses(self) -> list[tuple[Any, ...]]:
        return [(row["status"], row["problem"]) for row in await self.list_rows()]


class SenderDriver(OutboxDriver):
    def __init__(
        self, database: Database, clock: FakeClock, provider: Provider, graph: GraphClient
    ) -> None:
        super().__init__(database, clock)
        self.provider = provider
        self.graph = graph

    def create_sender(
        self, *, keep_content: bool = True, database: Database | None = None
    ) -> Sender:
        return Sender(
            database or self.database, self.vault, self.graph, self.clock, keep_content=keep_content
        )

    async def open_service_window(self, *phones: str) -> None:
        """Open the 24-hour service window by sending a message from each phone."""
        for phone in phones:
            await self.provider.send_user_message(phone[1:], UserMessage(text="hi"))

    def list_delivered_texts(self, phone: str = PHONE) -> list[str]:
        """Return the texts delivered to a phone."""
        return [message.message["text"]["body"] for message in self.provider.list_sent_to(phone)]
