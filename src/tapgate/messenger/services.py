"""What one process of the messenger shares between its conversations."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

import asyncpg

from tapgate.clock import Clock
from tapgate.messenger.channel.graph import GraphClient
from tapgate.messenger.flows.cipher import FlowKey
from tapgate.messenger.model.common import Language
from tapgate.messenger.model.events import (
    GatewayUnreachable,
    Intent,
    RequestRejected,
    RequestSucceeded,
)
from tapgate.messenger.model.gateway_requests import GatewayRequest
from tapgate.messenger.model.replies import OutgoingMessage
from tapgate.messenger.outbox import operations as outbox
from tapgate.service.throttle import Throttle
from tapgate.settings import Settings
from tapgate.store.database import Database
from tapgate.vault import Vault

#: Finds out what free text asks for.
ResolveIntent = Callable[[str, Language | None], Awaitable[Intent]]


class Gateway(Protocol):
    """Carries out what the conversation engine asks for; never raises."""

    async def perform(
        self, call: GatewayRequest
    ) -> RequestSucceeded | RequestRejected | GatewayUnreachable: ...


@dataclass(kw_only=True)
class Services:
    settings: Settings
    database: Database
    vault: Vault
    clock: Clock
    new_id: Callable[[], int]
    #: Tells this process from all others.
    process_id: int
    gateway: Gateway
    resolve_intent: ResolveIntent
    throttle: Throttle
    #: None: replies stay in the outbox, pictures cannot be fetched.
    graph: GraphClient | None = None
    #: None: no forms; PINs by the rules for text.
    flow_key: FlowKey | None = None
    #: Texts that may hold a PIN and are therefore nowhere else, by the id of what was received.
    withheld_texts: dict[int, str] = field(default_factory=dict, repr=False)
    #: Called with an address that something has been received from.
    wake_worker: Callable[[str], None] = lambda _: None
    #: Called when there is something new to send.
    wake_sender: Callable[[], None] = lambda: None

    async def enqueue(
        self,
        tx: asyncpg.Connection,
        address: str,
        message: OutgoingMessage,
        *,
        key: str | None = None,
    ) -> tuple[int, bool]:
        """Into the outbox, see there. Whoever commits `tx` wakes the sender afterwards."""
        return await outbox.enqueue(
            tx,
            self.vault,
            new_id=self.new_id,
            now=self.clock(),
            address=address,
            message=message,
            key=key,
        )
