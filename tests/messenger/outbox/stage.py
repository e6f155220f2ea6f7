"""An outbox, and one with somebody to send to."""

from typing import Any

import asyncpg

from messenger.set_clock import SetClock
from tapgate.ids import IdGenerator
from tapgate.messenger.channel.graph import GraphClient
from tapgate.messenger.fake_graph.provider import Provider, UserMessage
from tapgate.messenger.model.replies import OutgoingMessage, TextReply
from tapgate.messenger.outbox.operations import enqueue
from tapgate.messenger.outbox.sender import Sender
from tapgate.store.database import Database
from tapgate.vault import Vault

PHONE = "+23276123456"
OTHER = "+23276000001"


class Outbox:
    def __init__(self, database: Database, clock: SetClock) -> None:
        self.database = database
        self.clock = clock
        self.vault = Vault("a secret key for the tests of the outbox")
        self.new_id = IdGenerator(1)

    async def put(
        self, message: OutgoingMessage | str, address: str = PHONE, key: str | None = None
    ) -> tuple[int, bool]:
        async with self.database.transaction() as tx:
            return await self.put_in(tx, message, address, key)

    async def put_in(
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

    async def rows(self) -> list[asyncpg.Record]:
        return await self.database.fetch("SELECT * FROM messenger.outbox ORDER BY id")

    async def statuses(self) -> list[tuple[Any, ...]]:
        return [(row["status"], row["problem"]) for row in await self.rows()]


class Stage(Outbox):
    def __init__(
        self, database: Database, clock: SetClock, provider: Provider, graph: GraphClient
    ) -> None:
        super().__init__(database, clock)
        self.provider = provider
        self.graph = graph

    def sender(self, *, keep: bool = True, database: Database | None = None) -> Sender:
        return Sender(database or self.database, self.vault, self.graph, self.clock, keep=keep)

    async def written_by(self, *phones: str) -> None:
        """They wrote, so they may be answered."""
        for phone in phones:
            await self.provider.send_user_message(phone[1:], UserMessage(text="hi"))

    def texts(self, phone: str = PHONE) -> list[str]:
        """What a person has read."""
        return [one.message["text"]["body"] for one in self.provider.list_sent_to(phone)]
