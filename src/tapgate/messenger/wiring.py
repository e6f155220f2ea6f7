"""Assembly of one messenger process: opens its dependencies, and closes them on shutdown."""

import contextlib
import functools
import secrets
from collections.abc import AsyncIterator

import httpx2

from tapgate.core.id_generator import IdGenerator
from tapgate.core.settings import Settings
from tapgate.core.settings.declaration import SettingsError
from tapgate.core.vault import Vault
from tapgate.http.backlog_metrics import BacklogMetrics
from tapgate.http.metrics import EventCounters
from tapgate.http.process_metrics import ProcessMetrics
from tapgate.http.rate_limits.throttle import Throttle
from tapgate.messenger import conversation_store, gateway_requests, inbox
from tapgate.messenger.channel.graph import GraphClient
from tapgate.messenger.channel.sms import SmsClient
from tapgate.messenger.flows.cipher import FlowKey
from tapgate.messenger.inbox_worker import InboxWorker
from tapgate.messenger.language_sync import LanguageSync
from tapgate.messenger.outbox import leases, sms_sender
from tapgate.messenger.outbox.sender import Sender
from tapgate.messenger.outbox.sms_sender import SmsSender
from tapgate.messenger.outbox.status_reporter import StatusReporter
from tapgate.messenger.retention import RETENTION
from tapgate.messenger.services import Services
from tapgate.messenger.turn_reports import TurnReporter
from tapgate.messenger.understanding.language_model import IntentService
from tapgate.runtime.background import run_background_tasks
from tapgate.runtime.health import HealthMonitor
from tapgate.runtime.nodes import NodeRegistry
from tapgate.runtime.retention import RetentionJob
from tapgate.runtime.store.connection_budget import get_messenger_connections
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.server_status import ServerProbe
from tapgate_client import AsyncTapgateClient, RetryPolicy, ServiceSecret
from tapgate_client.clock import Clock, system_clock
from tapgate_client.schemas.nodes import NodeRole

#: Service name in the messenger's signed requests to the gateway.
SERVICE_NAME = "messenger"

#: A person is waiting for the reply, so fail early rather than respond late.
_GATEWAY_TIMEOUT_SECONDS = 6.0
_RETRIES = RetryPolicy(max_attempts=3, max_elapsed=8.0)


@contextlib.asynccontextmanager
async def open_services(
    settings: Settings,
    database_url: str,
    *,
    clock: Clock = system_clock,
    http: httpx2.AsyncBaseTransport | None = None,
) -> AsyncIterator[Services]:
    """Open services and run background tasks; `http` replaces the gateway client's transport."""
    async with contextlib.AsyncExitStack() as stack:
        gateway = AsyncTapgateClient(
            settings.gateway_url,
            ServiceSecret(SERVICE_NAME, _get_service_secret(settings)),
            retries=_RETRIES,
            timeout=_GATEWAY_TIMEOUT_SECONDS,
            http=http,
        )
        await stack.enter_async_context(gateway)
        services, sender, sms = await _build_services(stack, settings, database_url, clock, gateway)
        await stack.enter_async_context(services.nodes.remove_on_exit())
        await stack.enter_async_context(
            run_background_tasks(
                services.nodes.run(),
                InboxWorker(services).run(),
                sender.run(),
                sms.run(),
                StatusReporter(services.database, gateway, clock).run(),
                TurnReporter(services.database, gateway, clock).run(),
                LanguageSync(services.database, gateway, clock).run(),
                RetentionJob(services.database, clock, settings, RETENTION).run(),
            )
        )
        yield services


async def _build_services(
    stack: contextlib.AsyncExitStack,
    settings: Settings,
    database_url: str,
    clock: Clock,
    gateway: AsyncTapgateClient,
) -> tuple[Services, Sender, SmsSender]:
    flow_key = settings.messenger_flow_private_key
    connections = get_messenger_connections(settings.database_connections)
    database = await Database.connect(database_url, size=connections)
    stack.push_async_callback(database.close)
    understanding = IntentService(settings.messenger_model_url)
    stack.push_async_callback(understanding.close)
    throttle = Throttle(settings)
    stack.push_async_callback(throttle.close)
    slot = await database.fetchval("SELECT nextval('process_slots')")
    process_metrics = ProcessMetrics(
        settings, NodeRole.MESSENGER, {"requests": database.pool}, throttle
    )
    stack.callback(process_metrics.close)
    await stack.enter_async_context(run_background_tasks(process_metrics.run()))
    health = HealthMonitor(settings, ServerProbe(database))
    graph, vault = await _open_graph_client(stack, settings), Vault(settings.secret_key)
    keep_content, counters = not settings.is_production, EventCounters()
    sender = Sender(database, vault, graph, clock, keep_content=keep_content)
    sms_client = _open_sms_client(stack, settings)
    sms = SmsSender(database, vault, sms_client, clock, counters, keep_content=keep_content)

    def wake_senders() -> None:
        sender.wake()
        sms.wake()

    services = Services(
        settings=settings,
        database=database,
        vault=vault,
        clock=clock,
        new_id=IdGenerator(slot, lambda: int(clock().timestamp() * 1000)),
        process_id=secrets.randbits(63),
        perform_request=functools.partial(gateway_requests.perform, gateway),
        resolve_intent=understanding.resolve_intent,
        throttle=throttle,
        health=health,
        nodes=NodeRegistry(settings, NodeRole.MESSENGER, database, health),
        active_conversations=conversation_store.cache_active_count(database, clock),
        metric_sources=[
            process_metrics,
            BacklogMetrics(
                database, [leases.BACKLOG_SQL, sms_sender.BACKLOG_SQL, inbox.BACKLOG_SQL]
            ),
        ],
        event_counters=counters,
        graph=graph,
        sms=sms_client,
        flow_key=None if flow_key is None else FlowKey(flow_key),
        wake_sender=wake_senders,
    )
    return services, sender, sms


async def _open_graph_client(
    stack: contextlib.AsyncExitStack, settings: Settings
) -> GraphClient | None:
    url, token = settings.messenger_graph_url, settings.messenger_access_token
    number = settings.messenger_phone_number_id
    if url is None or token is None or number is None:
        return None
    return await stack.enter_async_context(GraphClient(url, token, number))


def _open_sms_client(stack: contextlib.AsyncExitStack, settings: Settings) -> SmsClient | None:
    if settings.sms_url is None or settings.sms_token is None:
        return None
    client = SmsClient(settings.sms_url, settings.sms_token)
    stack.callback(client.close)
    return client


def _get_service_secret(settings: Settings) -> str:
    secret = settings.service_secrets.get(SERVICE_NAME)
    if secret is None:
        raise SettingsError(f"TAPGATE_SERVICE_SECRETS must contain a secret for {SERVICE_NAME}")
    return secret
