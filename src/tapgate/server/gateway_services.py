"""Gateway process services: opened in dependency order, closed in reverse."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import NamedTuple

from tapgate import VERSION
from tapgate.auth.actors import Actor
from tapgate.auth.authenticator import Authenticator
from tapgate.business.agents.cash_out_requests.operations import finish as finish_cash_out
from tapgate.business.agents.float_requests.operations import finish_funding
from tapgate.business.approvals import operations as approvals
from tapgate.business.approvals.guarded_calls import run_guarded
from tapgate.business.compliance.alerts.operations import close_alert
from tapgate.business.disputes.operations import finish_refund as finish_dispute
from tapgate.business.finance.payouts.operations import record_command
from tapgate.business.finance.reconciliation.operations import record_line_command
from tapgate.business.merchants.pos.payments import record_refund
from tapgate.business.payments.recalls.operations import record_recall
from tapgate.business.payments.transactions.reversals import record_reversal
from tapgate.business.reporting.metric_sources import open_metrics
from tapgate.business.staff.request_logs.recorder import RequestLog
from tapgate.core.id_generator import IdGenerator
from tapgate.core.settings import Settings
from tapgate.core.vault import Vault
from tapgate.events.audit.rejections import RejectionLog
from tapgate.events.notifications.receipts import KINDS_BY_SETTING
from tapgate.http.api.book_peers import BookPeers
from tapgate.http.api.latency_samples import LatencySamples
from tapgate.http.api.report_calls import ReportClient
from tapgate.http.api.services import Services, create_heavy_read_limit
from tapgate.http.endpoint import Endpoint
from tapgate.http.metrics import EventCounters, MetricSource
from tapgate.http.rate_limits.throttle import Throttle
from tapgate.ledger.card_proofs.proof_verifier import ProofVerifier
from tapgate.ledger.chart import REFUND
from tapgate.ledger.commands import (
    LedgerCommand,
    RecallDecision,
    RecallRequest,
    Reversal,
    ReviewDecision,
    TransactionResult,
)
from tapgate.ledger.engine.group_commit import (
    MAX_PENDING_COMMANDS,
    BatchCallback,
    Ledger,
    connect_ledger,
    ignore_batch,
)
from tapgate.ledger.engine.metrics import BatchReport, LedgerMetrics
from tapgate.ledger.engine.node_ledger import NodeLedger
from tapgate.ledger.pins.pin_verifier import PinVerifier
from tapgate.ledger.pins.wrong_pin_limit import WrongPinLimit
from tapgate.runtime.commit_monitor import CommitMonitor
from tapgate.runtime.health import HealthMonitor
from tapgate.runtime.idle_cores import IdleCores
from tapgate.runtime.node_files import get_shared_folder, get_socket_path
from tapgate.runtime.nodes import NodeRegistry
from tapgate.runtime.store import work_queue
from tapgate.runtime.store.commit_probe import probe_commit
from tapgate.runtime.store.connection_budget import REPORT_POOL_CONNECTIONS, divide_connections
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.embedded import EmbeddedPostgres
from tapgate.runtime.store.replica import Replica
from tapgate.runtime.store.server_status import ServerProbe
from tapgate.runtime.store.signals import Signals
from tapgate.runtime.store.transaction import Transaction, open_transaction
from tapgate.server.event_records import EVENT_RECORD_LOADERS
from tapgate_client import ids, money
from tapgate_client.clock import Clock, system_clock
from tapgate_client.schemas.nodes import NodeRole


class _Base(NamedTuple):
    """What the other services are built from."""

    settings: Settings
    clock: Clock
    database: Database
    queue_database: Database
    signals: Signals
    vault: Vault
    new_id: IdGenerator


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
        base = await _open_base(
            stack, settings, database_url, clock, is_report_worker=is_report_worker
        )
        pins = _open_pin_verifier(stack, base)
        samples = _open_latency_samples(stack, settings)
        if is_report_worker:
            parts = _build_unused_ledger(base, pins)
        else:
            parts = await _open_ledger(
                stack, base, database_url, pins, samples, is_worker=is_worker
            )
        throttle, event_counters = _open_throttle(stack, settings), EventCounters()
        yield Services(
            **base._asdict(),
            pin_verifier=pins,
            proof_verifier=ProofVerifier(base.database, base.signals, base.vault),
            authenticator=_build_authenticator(base),
            ledger=parts.ledger,
            health=parts.health,
            nodes=NodeRegistry(settings, NodeRole.GATEWAY, base.database, parts.health),
            throttle=throttle,
            latency_samples=samples,
            rejection_log=_open_rejection_log(stack, base),
            request_log=_open_request_log(stack, base, event_counters),
            book_peers=_open_book_peers(stack, settings),
            run_guarded=run_guarded,
            guarded_endpoints={each.operation_id: each for each in endpoints if each.guard},
            metric_sources=await _open_metrics(stack, base, throttle, parts),
            event_record_loaders=EVENT_RECORD_LOADERS,
            event_counters=event_counters,
            heavy_read_limit=create_heavy_read_limit(is_report_worker=is_report_worker),
            report_client=None if report_socket is None else ReportClient(report_socket),
            replica=await _open_replica(stack, settings),
        )


async def _open_base(
    stack: AsyncExitStack,
    settings: Settings,
    url: str,
    clock: Clock,
    *,
    is_report_worker: bool,
) -> _Base:
    database, queue_database = await _connect(
        stack, settings, url, is_report_worker=is_report_worker
    )
    return _Base(
        settings=settings,
        clock=clock,
        database=database,
        queue_database=queue_database,
        signals=await _open_signals(stack, url, is_listening=not is_report_worker),
        vault=Vault(settings.secret_key),
        new_id=await _create_id_generator(database, clock),
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


def _open_pin_verifier(stack: AsyncExitStack, base: _Base) -> PinVerifier:
    settings = base.settings
    limit = WrongPinLimit(
        get_shared_folder(settings.data_dir) / "wrong_pins",
        max_wrong=settings.wrong_pin_limit,
        max_percent=settings.wrong_pin_percent,
    )
    stack.callback(limit.close)
    return PinVerifier(base.vault, refuse_weak=settings.refuse_weak_pins, wrong_pin_limit=limit)


def _build_authenticator(base: _Base) -> Authenticator:
    return Authenticator(
        settings=base.settings,
        database=base.database,
        signals=base.signals,
        vault=base.vault,
        clock=base.clock,
        new_id=base.new_id,
    )


def _open_rejection_log(stack: AsyncExitStack, base: _Base) -> RejectionLog:
    log = RejectionLog(
        partial(open_transaction, base.database, base.clock, base.new_id), base.clock
    )
    stack.push_async_callback(log.stop)
    return log


def _open_request_log(
    stack: AsyncExitStack, base: _Base, event_counters: EventCounters
) -> RequestLog:
    log = RequestLog(
        base.settings, base.queue_database, base.new_id, event_counters.count_dropped_logs
    )
    stack.push_async_callback(log.stop)
    return log


def _open_book_peers(stack: AsyncExitStack, settings: Settings) -> BookPeers:
    peers = BookPeers(settings)
    stack.push_async_callback(peers.close)
    return peers


def _open_throttle(stack: AsyncExitStack, settings: Settings) -> Throttle:
    throttle = Throttle(settings)
    stack.push_async_callback(throttle.close)
    return throttle


async def _open_replica(stack: AsyncExitStack, settings: Settings) -> Replica | None:
    replica = await Replica.connect(settings)
    if replica is not None:
        stack.push_async_callback(replica.database.close)
    return replica


async def _create_id_generator(database: Database, clock: Clock) -> IdGenerator:
    slot = await database.fetchval("SELECT nextval('process_slots')")
    get_ms = None if clock is system_clock else (lambda: int(clock().timestamp() * 1000))
    return IdGenerator(slot, get_ms)


class _LedgerParts(NamedTuple):
    ledger: Ledger
    health: HealthMonitor
    metrics: LedgerMetrics | None  # None in a report worker


async def _open_ledger(
    stack: AsyncExitStack,
    base: _Base,
    url: str,
    pins: PinVerifier,
    samples: LatencySamples,
    *,
    is_worker: bool,
) -> _LedgerParts:
    metrics = LedgerMetrics(get_shared_folder(base.settings.data_dir), samples.add_batch)
    stack.callback(metrics.close)
    database = await connect_ledger(url)
    commits = CommitMonitor(
        get_shared_folder(base.settings.data_dir) / "commits", partial(probe_commit, database)
    )
    stack.callback(commits.close)
    health = HealthMonitor(base.settings, ServerProbe(database), commits)

    def report_batch(report: BatchReport) -> None:
        metrics.count(report)
        if report.timing is not None:
            commits.record_commit()
        elif report.outage is not None:
            commits.record_failure(report.outage)

    ledger = _build_ledger(
        base, database, pins, health, is_worker=is_worker, on_batch=report_batch
    ).start()
    stack.push_async_callback(ledger.stop)
    return _LedgerParts(ledger, health, metrics)


def _build_unused_ledger(base: _Base, pins: PinVerifier) -> _LedgerParts:
    """Return the ledger for a report worker, which reads rules and never submits a command."""
    health = HealthMonitor(base.settings, ServerProbe(base.database))
    ledger = _build_ledger(base, base.database, pins, health, is_worker=False)
    return _LedgerParts(ledger, health, None)


async def _open_metrics(
    stack: AsyncExitStack, base: _Base, throttle: Throttle, parts: _LedgerParts
) -> list[MetricSource]:
    if parts.metrics is None:
        return []
    metrics = open_metrics(
        base.settings, throttle, parts.ledger, parts.metrics, base.database, base.queue_database
    )
    return await stack.enter_async_context(metrics)


def open_idle_cores(settings: Settings) -> IdleCores | None:
    """Measure the cores if PostgreSQL uses them too; a worker gets its URL from the supervisor."""
    embedded_url = EmbeddedPostgres(settings.data_dir).url
    return IdleCores() if settings.database_url in (None, embedded_url) else None


def _build_ledger(
    base: _Base,
    database: Database,
    pins: PinVerifier,
    health: HealthMonitor,
    *,
    is_worker: bool,
    on_batch: BatchCallback = ignore_batch,
) -> Ledger:
    settings = base.settings
    create_ledger: Callable[..., Ledger] = Ledger
    if is_worker and settings.workers > 1:
        # Workers of different releases, such as after an upgrade in place, cannot share a writer.
        path = get_socket_path(settings.data_dir, f"ledger-{VERSION}.sock")
        create_ledger = partial(NodeLedger, path, idle_cores=open_idle_cores(settings))
    return create_ledger(
        database,
        base.signals,
        currency=settings.currency,
        timezone=settings.timezone,
        clock=base.clock,
        new_id=base.new_id,
        is_correct_pin=pins.matches,
        before_commit=partial(_write_related_rows, settings.currency, base.vault),
        before_submit=(
            health.require_sync_replication if settings.require_sync_replication else None
        ),
        wrong_pin_limit=pins.wrong_pin_limit,
        low_float_threshold=money.from_whole_units(settings.float_low, settings.currency),
        notification_kinds=KINDS_BY_SETTING[settings.receipts],
        max_pending=MAX_PENDING_COMMANDS * settings.workers,
        on_batch=on_batch,
    )


async def _write_related_rows(
    currency: str, vault: Vault, tx: Transaction, command: LedgerCommand, result: TransactionResult
) -> bytes | None:
    """Write the rows outside the ledger that commit with a command; return the alert or recall."""
    assert command.audit is not None
    related = None
    approval_result = {"status": result.status}
    if isinstance(command, RecallRequest | RecallDecision):
        if result.original_id is not None:
            await record_reversal(tx, command.audit, result, currency=currency)
        related = await record_recall(tx, command, vault=vault)
    elif isinstance(command, ReviewDecision):
        related = await close_alert(tx, command, result)
    else:
        approval_result["transaction_id"] = ids.encode(ids.TRANSACTION, result.transaction_id)
        if isinstance(command, Reversal):
            await record_reversal(tx, command.audit, result, currency=currency)
        else:
            if command.type == REFUND:
                await record_refund(tx, command.audit, result, currency=currency)
            if command.dispute is not None:
                await finish_dispute(tx, command.audit, command.dispute, vault=vault)
            if command.float_request_id is not None:
                await finish_funding(
                    tx, command.audit, command.float_request_id, result, vault=vault
                )
            if command.cash_out_request_id is not None:
                await finish_cash_out(
                    tx, command.audit, command.cash_out_request_id, result, vault=vault
                )
            actor = Actor.from_audit_facts(command.audit)
            await record_command(tx, actor, command)
            await record_line_command(tx, actor, command, result)
    if not isinstance(command, RecallRequest) and command.approval_id is not None:
        await approvals.end_execution(
            tx,
            Actor.from_audit_facts(command.audit),
            command.approval_id,
            approval_result,
            currency=currency,
        )
    return related
