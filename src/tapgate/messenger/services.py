"""What one process of the messenger shares between its conversations."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

import asyncpg

from tapgate.clock import Clock
from tapgate.messenger.channel.graph import Graph
from tapgate.messenger.flows.cipher import FlowKey
from tapgate.messenger.model.calls import Call
from tapgate.messenger.model.events import Answered, Meaning, Refused, Unreachable
from tapgate.messenger.model.kinds import Language
from tapgate.messenger.model.replies import Outgoing
from tapgate.messenger.outbox import operations as outbox
from tapgate.service.throttle import Throttle
from tapgate.settings import Settings
from tapgate.store.database import Database
from tapgate.vault import Vault

#: Finds out what free text asks for.
Understand = Callable[[str, Language | None], Awaitable[Meaning]]


class Gateway(Protocol):
    """Carries out what the conversation engine asks for; never raises."""

    async def perform(self, call: Call) -> Answered | Refused | Unreachable: ...


@dataclass(kw_only=True)
class Services:
    settings: Settings
    database: Database
    vault: Vault
    clock: Clock
    new_id: Callable[[], int]
    #: Tells this process from all others.
    process: int
    gateway: Gateway
    understand: Understand
    throttle: Throttle
    #: None: replies stay in the outbox, pictures cannot be fetched.
    graph: Graph | None = None
    #: None: no forms; PINs by the rules for text.
    flow_key: FlowKey | None = None
    #: Texts that may hold a PIN and are therefore nowhere else, by the id of what was received.
    withheld: dict[int, str] = field(default_factory=dict, repr=False)
    #: Called with an address that something has been received from.
    wake: Callable[[str], None] = lambda _: None
    #: Called when there is something new to send.
    wake_sender: Callable[[], None] = lambda: None

    async def put(
        self, tx: asyncpg.Connection, address: str, message: Outgoing, *, key: str | None = None
    ) -> tuple[int, bool]:
        """Into the outbox, see there. Whoever commits `tx` wakes the sender afterwards."""
        return await outbox.put(
            tx,
            self.vault,
            new_id=self.new_id,
            now=self.clock(),
            address=address,
            message=message,
            key=key,
        )
