"""Dependencies shared by the routes and background workers of one messenger process."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from tapgate.core.settings import Settings
from tapgate.core.vault import Vault
from tapgate.http.metrics import EventCounters, MetricSource
from tapgate.http.rate_limits.throttle import Throttle
from tapgate.messenger.channel.graph import GraphClient
from tapgate.messenger.channel.sms import SmsClient
from tapgate.messenger.flows.cipher import FlowKey
from tapgate.messenger.gateway_requests import GatewayRequest
from tapgate.messenger.model import Intent, Language, RequestOutcome
from tapgate.runtime.cached_result import CachedResult
from tapgate.runtime.health import HealthMonitor
from tapgate.runtime.nodes import NodeRegistry
from tapgate.runtime.store.database import Database
from tapgate_client.clock import Clock

#: Resolves a text's intent, given the person's language if it is known.
ResolveIntent = Callable[[str, Language | None], Awaitable[Intent]]
#: Sends a request to the gateway; failures are returned as outcomes.
PerformRequest = Callable[[GatewayRequest], Awaitable[RequestOutcome]]


@dataclass(kw_only=True)
class Services:
    settings: Settings
    database: Database
    vault: Vault
    clock: Clock
    new_id: Callable[[], int]
    #: Random ID, unique to this process.
    process_id: int
    perform_request: PerformRequest
    resolve_intent: ResolveIntent
    throttle: Throttle
    health: HealthMonitor
    nodes: NodeRegistry
    active_conversations: CachedResult[int]
    #: Called when the outbox may contain new messages.
    wake_sender: Callable[[], None]
    metric_sources: Sequence[MetricSource] = ()
    event_counters: EventCounters = field(default_factory=EventCounters)
    #: If None, all messages stay in the outbox, and images cannot be downloaded.
    graph: GraphClient | None = None
    #: If None, nothing goes out as SMS.
    sms: SmsClient | None = None
    #: If None, there are no PIN forms, and `messenger_text_pin` decides whether the webhook accepts
    #: PINs as text.
    flow_key: FlowKey | None = None
    #: Texts that may contain a PIN, by inbox row ID; kept in memory only.
    withheld_texts: dict[int, str] = field(default_factory=dict, repr=False)
    #: Addresses with new messages in the inbox.
    woken_addresses: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
