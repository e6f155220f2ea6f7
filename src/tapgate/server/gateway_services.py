"""Gateway process services: opened in dependency order, closed in reverse."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from tapgate import VERSION
from tapgate.auth.actors import Actor
from tapgate.auth.authenticator import Authenticator
from tapgate.business.approvals import operations as approvals
from tapgate.business.approvals.guarded_calls import run_guarded
from tapgate.business.compliance.alerts.operations import close_alert
from tapgate.business.merchants.pos.payments import record_refund
from tapgate.business.reporting.metric_sources import open_metrics
from tapgate.business.staff.request_logs.recorder import RequestLog
from tapgate.core.id_generator import IdGenerator
from tapgate.core.settings import Settings
from tapgate.core.vault import Vault
from tapgate.events.audit.rejections import RejectionLog
from tapgate.events.notifications.receipts import KINDS_BY_SETTING
from tapgate.http.api.latency_samples import LatencySamples
from tapgate.http.api.report_calls import ReportClient
from tapgate.http.api.services import Services, create_heavy_read_limit
from tapgate.http.endpoint import Endpoint
from tapgate.http.metrics import EventCounters
from tapgate.http.rate_limits.throttle import Throttle
from tapgate.ledger.card_proofs.verifier import ProofVerifier
from tapgate.ledger.chart import REFUND
from tapgate.ledger.commands import LedgerCommand, ReviewDecision, TransactionResult
from tapgate.ledger.engine.group_commit import MAX_PENDING_COMMANDS, Ledger
from tapgate.ledger.engine.node_ledger import NodeLedger
from tapgate.ledger.pins.verifier import PinVerifier
from tapgate.ledger.pins.wrong_pin_limit import WrongPinLimit
from tapgate.runtime.health import HealthMonitor
from tapgate.runtime.node_files import get_shared_folder, get_socket_path
from tapgate.runtime.nodes import NodeRegistry
from tapgate.runtime.store import work_queue
from tapgate.runtime.store.connection_budget import REPORT_POOL_CONNECTIONS, divide_connections
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.replica import Replica
from tapgate.runtime.store.signals import Signals
from tapgate.runtime.store.transaction import Transaction, open_transaction
from tapgate.server.event_records import EVENT_RECORD_LOADERS
from tapgate_client import ids, money
from tapgate_client.clock import Clock, system_clock
from tapgate_client.schemas.nodes import NodeRole


@asynccontextmanager
async def open_services(
    settings: Settings,
    database_url: str,
    *,
    endpoints: Iterable[Endpoint] = (),
    clock: Clock = system_clock,
    is_worker: bool = False,
    is_report_worker: bool = False,
    report_socket: str | None = None,
) -> AsyncIterator[Services]:
    """Start the services that all requests in a process share, and stop them on exit.

    A process that serves no requests passes no endpoints, which take long to import.
    A report worker has no ledger. It does not listen for changes either: every listening process
    confirms a change before its caller gets a response, which a busy report worker would delay.
    """
    async with AsyncExitStack() as stack:
        database, queue_database = await _connect(
            stack, settings, database_url, is_report_worker=is_report_worker
        )
        signals = await _open_signals(stack, database_url, is_listening=not is_report_worker)
        new_id = await _create_id_generator(database, clock)
        vault = Vault(settings.secret_key)
        pins = PinVerifier(
            vault,
            refuse_weak=settings.refuse_weak_pins,
            wrong_pin_limit=_open_wrong_pin_limit(stack, settings),
        )
        latency_samples = _open_latency_samples(stack, settings)
        ledger = _build_ledger(settings, signals, clock, new_id, pins, is_worker=is_worker)
        if not is_report_worker:
            await ledger.start(database_url)
            stack.push_async_callback(ledger.stop)
        health = _build_health_monitor(settings, ledger)
        throttle = _open_throttle(stack, settings)
        metrics = open_metrics(
            settings, throttle, ledger, latency_samples, database, queue_database
        )
        authenticator = Authenticator(
            settings=settings, database=database, signals=signals, vault=vault, clock=clock,
            new_id=new_id,
        )  # fmt: skip
        event_counters = EventCounters()
        rejection_log = RejectionLog(partial(open_transaction, database, clock, new_id), clock)
        stack.push_async_callback(rejection_log.stop)
        request_log = RequestLog(
            settings, queue_database, new_id, event_counters.count_dropped_logs
        )
        stack.push_async_callback(request_log.stop)
        yield Services(
            settings=settings,
            database=database,
            queue_database=queue_database,
            signals=signals,
            vault=vault,
            pin_verifier=pins,
            proof_verifier=ProofVerifier(database, signals, vault),
            authenticator=authenticator,
            ledger=ledger,
            health=health,
            nodes=NodeRegistry(settings, NodeRole.GATEWAY, database, health),
            clock=clock,
            new_id=new_id,
            throttle=throttle,
            latency_samples=latency_samples,
            rejection_log=rejection_log,
            request_log=request_log,
            run_guarded=run_guarded,
            guarded_endpoints={
                endpoint.operation_id: endpoint
                for endpoint in endpoints
                if endpoint.guard is not None
            },
            metric_sources=[] if is_report_worker else await stack.enter_async_context(metrics),
            event_record_loaders=EVENT_RECORD_LOADERS,
            event_counters=event_counters,
            heavy_read_limit=create_heavy_read_limit(is_report_worker=is_report_worker),
            report_client=None if report_socket is None else ReportClient(report_socket),
            replica=await _open_replica(stack, settings),
        )


async def _connect(
    stack: AsyncExitStack, settings: Settings, url: str, *, is_report_worker: bool
) -> tuple[Database, Database]:
    """Connect to the database for requests and for work queues."""
    connections = divide_connections(settings.database_connections)
    size = REPORT_POOL_CONNECTIONS if is_report_worker else connections.requests
    database = await Database.connect(url, size=size)
    stack.push_async_callback(database.close)
    queue_database = await Database.connect(
        url, size=connections.queue, session=work_queue.SESSION_SETTINGS
    )
    stack.push_async_callback(queue_database.close)
    return database, queue_database


async def _open_signals(stack: AsyncExitStack, url: str, *, is_listening: bool) -> Signals:
    signals = Signals(url)
    if is_listening:
        await signals.start()
        stack.push_async_callback(signals.stop)
    return signals


def _open_latency_samples(stack: AsyncExitStack, settings: Settings) -> LatencySamples:
    samples = LatencySamples(get_shared_folder(settings.data_dir))
    stack.callback(samples.close)
    return samples


def _open_wrong_pin_limit(stack: AsyncExitStack, settings: Settings) -> WrongPinLimit:
    limit = WrongPinLimit(
        get_shared_folder(settings.data_dir) / "wrong_pins",
        max_wrong=settings.wrong_pin_limit,
        max_percent=settings.wrong_pin_percent,
    )
    stack.callback(limit.close)
    return limit


def _open_throttle(stack: AsyncExitStack, settings: Settings) -> Throttle:
    throttle = Throttle(settings)
    stack.push_async_callback(throttle.close)
    return throttle


async def _open_replica(stack: AsyncExitStack, settings: Settings) -> Replica | None:
    replica = await Replica.connect(settings)
    if replica is not None:
        stack.push_async_callback(replica.database.close)
    return replica


def _build_health_monitor(settings: Settings, ledger: Ledger) -> HealthMonitor:
    health = HealthMonitor(settings, ledger.get_server_status)
    if settings.require_sync_replication:
        ledger.before_submit = health.require_sync_replication
    return health


async def _create_id_generator(database: Database, clock: Clock) -> IdGenerator:
    slot = await database.fetchval("SELECT nextval('process_slots')")
    get_ms = None if clock is system_clock else (lambda: int(clock().timestamp() * 1000))
    return IdGenerator(slot, get_ms)


def _build_ledger(
    settings: Settings,
    signals: Signals,
    clock: Clock,
    new_id: IdGenerator,
    pins: PinVerifier,
    *,
    is_worker: bool,
) -> Ledger:
    create_ledger: Callable[..., Ledger] = Ledger
    if is_worker and settings.workers > 1:
        # Workers of different releases, such as after an upgrade in place, cannot share a writer.
        path = get_socket_path(settings.data_dir, f"ledger-{VERSION}.sock")
        create_ledger = partial(NodeLedger, path)
    return create_ledger(
        signals,
        currency=settings.currency,
        timezone=settings.timezone,
        clock=clock,
        new_id=new_id,
        is_correct_pin=pins.matches,
        before_commit=partial(_write_related_rows, settings.currency),
        wrong_pin_limit=pins.wrong_pin_limit,
        low_float_threshold=money.from_whole_units(settings.float_low, settings.currency),
        notification_kinds=KINDS_BY_SETTING[settings.receipts],
        max_pending=MAX_PENDING_COMMANDS * settings.workers,
    )


async def _write_related_rows(
    currency: str, tx: Transaction, command: LedgerCommand, result: TransactionResult
) -> bytes | None:
    """Write the rows outside the ledger that commit with a command; return the resolved alert."""
    assert command.audit is not None
    alert = None
    approval_result = {"status": result.status}
    if isinstance(command, ReviewDecision):
        alert = await close_alert(tx, command, result)
    else:
        approval_result["transaction_id"] = ids.encode(ids.TRANSACTION, result.transaction_id)
        if command.type == REFUND:
            await record_refund(tx, command.audit, result, currency=currency)
    if command.approval_id is not None:
        await approvals.end_execution(
            tx,
            Actor.from_audit_facts(command.audit),
            command.approval_id,
            approval_result,
            currency=currency,
        )
    return alert
