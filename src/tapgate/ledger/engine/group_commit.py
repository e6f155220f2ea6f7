"""Group commit: one database transaction executes a batch of ledger commands.

While a batch is being processed, arriving commands queue up for the next batch. Under light load, a
batch contains one command. Under heavy load, hundreds of commands share the round trips and the
disk flush.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from time import perf_counter
from typing import Final, NamedTuple, Self
from zoneinfo import ZoneInfo

import asyncpg
import msgspec
import structlog

from tapgate.core import telemetry
from tapgate.core.id_generator import IdGenerator
from tapgate.ledger import chart
from tapgate.ledger.commands import (
    Command,
    LedgerCommand,
    Outcome,
    RecallDecision,
    RecallRequest,
    RejectedBeforeCommitError,
    Reversal,
    ReviewDecision,
    TransactionResult,
)
from tapgate.ledger.decisions.allowance import Allowance, build_allowance
from tapgate.ledger.decisions.apply import apply_decision
from tapgate.ledger.decisions.assess import Assessment, ReversalAssessment, assess, assess_reversal
from tapgate.ledger.decisions.decide import decide
from tapgate.ledger.decisions.recalls import decide_recall, decide_recall_request
from tapgate.ledger.decisions.reversals import decide_reversal
from tapgate.ledger.decisions.review import decide_review
from tapgate.ledger.decisions.state import Decision, State
from tapgate.ledger.engine.load import StaleLoadError, find_account, load, load_without_locks
from tapgate.ledger.engine.metrics import BatchReport, BatchTiming
from tapgate.ledger.engine.spans import add_traceparent, trace_batch
from tapgate.ledger.engine.write import write
from tapgate.ledger.idempotency.replay_counts import ReplayCounter
from tapgate.ledger.pins.pin_lockout import PinMatcher
from tapgate.ledger.pins.wrong_pin_limit import WrongPinLimit
from tapgate.ledger.rules import loaded_rules as ledger_rules
from tapgate.ledger.rules.loaded_rules import Rules
from tapgate.runtime.store.connection_budget import LEDGER_CONNECTIONS
from tapgate.runtime.store.connection_settings import build_payment_limits
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.pool import Pool
from tapgate.runtime.store.signals import Signals
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.clock import Clock, get_platform_day
from tapgate_client.errors import ApiError, Code, unavailable

log = structlog.get_logger()

MAX_BATCH_SIZE: Final = 500
#: Per worker. Above its concurrency limit for requests, because commands also come from elsewhere.
MAX_PENDING_COMMANDS: Final = 2_000
_MAX_ATTEMPTS: Final = 3
#: Event loop iterations that a request may need to get from its socket to the ledger. A payment
#: with a card's proof needs two more than one without.
_GATHER_LOOP_TURNS: Final = 8
#: If a batch fails after waiting this long for the database, the commands that are pending since
#: then fail too, instead of waiting in turn.
MAX_OUTAGE_SECONDS: Final = 1.0

#: Every statement in a batch looks up rows by key, so one generic plan per statement suffices.
#: A plan made while the tables were empty stays cached, so table scans, hash joins and
#: merge joins are disabled.
_SESSION_SETTINGS: Final = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}


class PendingCommand(NamedTuple):
    command: LedgerCommand
    future: asyncio.Future[Outcome]


#: Called after every batch, and for commands that failed without reaching the database.
BatchCallback = Callable[[BatchReport], None]


#: Writes the rows that commit with a command that has `audit`, in the database transaction that
#: executes it. The command's accounts are locked, so the hook must not wait for a lock whose holder
#: may wait for an account. An exception fails the command. Declines, rejections and replays do not
#: call the hook. The caller receives the return value in the outcome.
BeforeCommit = Callable[[Transaction, LedgerCommand, TransactionResult], Awaitable[bytes | None]]

#: Raises an ApiError if no command may be executed.
BeforeSubmit = Callable[[], Awaitable[None]]


def ignore_batch(report: BatchReport) -> None:
    """Do nothing."""


class BatchStats(msgspec.Struct):
    """Counters for batches committed so far and for retried attempts."""

    batches: int = 0
    commands: int = 0
    largest_batch: int = 0
    retries: int = 0


async def connect_ledger(url: str) -> Database:
    """Open the connections on which a ledger executes batches."""
    return await Database.connect(
        url, size=LEDGER_CONNECTIONS, session=_SESSION_SETTINGS, build_limits=build_payment_limits
    )


class Ledger:
    """Executes commands in batches. `database` is from `connect_ledger`; `stop` closes it."""

    def __init__(
        self,
        database: Database,
        signals: Signals,
        *,
        currency: str,
        timezone: ZoneInfo,
        clock: Clock,
        new_id: IdGenerator,
        is_correct_pin: PinMatcher,
        before_commit: BeforeCommit | None = None,
        before_submit: BeforeSubmit | None = None,
        on_batch: BatchCallback = ignore_batch,
        wrong_pin_limit: WrongPinLimit | None = None,
        low_float_threshold: int = 0,
        notification_kinds: frozenset[str] = frozenset(),
        max_pending: int = MAX_PENDING_COMMANDS,
    ) -> None:
        self.database = database
        self._signals = signals
        self._currency = currency
        self._timezone = timezone
        self.clock = clock
        self._new_id = new_id
        self.is_correct_pin = is_correct_pin
        self._before_commit = before_commit
        self._wrong_pin_limit = wrong_pin_limit
        self.low_float_threshold = low_float_threshold
        self.notification_kinds = notification_kinds
        self.max_pending = max_pending
        self.on_batch = on_batch
        self.before_submit = before_submit
        self._pending: deque[PendingCommand] = deque()
        self._wakeup = asyncio.Event()
        self._is_stopping = False
        #: Processes one batch at a time. Two concurrent batches were slower: they are
        #: smaller and wait for each other's row locks (docs/benchmark-details.md).
        self.worker: asyncio.Task[None] | None = None
        self._rules: Rules | None = None
        self._rules_version = 0
        self.batch_stats = BatchStats()
        self.replay_counter = ReplayCounter(clock)
        signals.subscribe(ledger_rules.RULES_CHANGED, lambda _: self.invalidate_rules())
        signals.on_reconnect(self.invalidate_rules)

    def start(self) -> Self:
        self.worker = asyncio.create_task(self._run_worker())
        return self

    async def stop(self) -> None:
        """Shut down gracefully: process the pending commands and accept no new ones."""
        self._is_stopping = True
        self._wakeup.set()
        if self.worker is not None:
            await self.worker
        try:
            await self.replay_counter.flush(self.database)
        except (ApiError, asyncpg.PostgresError) as error:
            log.warning("ledger.replay_counts_lost", error=type(error).__name__)
        await self.database.close()

    @property
    def queue_length(self) -> int:
        """Commands that wait for the next batch."""
        return len(self._pending)

    @property
    def pool(self) -> Pool:
        return self.database.pool

    async def submit(self, command: LedgerCommand) -> Outcome:
        """Execute one command and return its outcome.

        Raises `ApiError`: 503 if the queue is full, the ledger is stopping or the database is
        unreachable, and 500 if the command cannot be stored.
        """
        if self.before_submit is not None:
            try:
                await self.before_submit()
            except ApiError as error:
                self._report_failure([command], error)
                raise
        # If the caller is canceled, only this wait ends: the command is still executed.
        if telemetry.tracer is None:
            return await self._dispatch(command)
        with telemetry.start_span("ledger submit"):
            return await self._dispatch(add_traceparent(command))

    def _dispatch(self, command: LedgerCommand) -> Awaitable[Outcome]:
        return self.enqueue(command)

    def enqueue(self, command: LedgerCommand) -> "asyncio.Future[Outcome]":
        """Add a command to the next batch, and return a future for its outcome."""
        if self._is_stopping:
            raise self._reject(command, "The service is stopping.")
        if len(self._pending) >= self.max_pending:
            raise self._reject(command, "The ledger queue is full.")
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._pending.append(PendingCommand(command, future))
        self._wakeup.set()
        return future

    async def assess(self, database: Database, command: Command) -> Assessment:
        """Assess a command, built by `assess.build_command`, without executing it.

        Uses a connection of `database`, because the ledger's own are reserved for batches and
        health checks.
        """
        return assess(await self._load_without_locks(database, command), command)

    async def assess_reversal(self, database: Database, reversal: Reversal) -> ReversalAssessment:
        """Assess a reversal without executing it, on a connection of `database`."""
        return assess_reversal(await self._load_without_locks(database, reversal), reversal)

    async def _load_without_locks(self, database: Database, command: LedgerCommand) -> State:
        for _ in range(_MAX_ATTEMPTS):
            with contextlib.suppress(StaleLoadError):
                async with database.transaction() as tx:
                    rules = await self.get_rules(tx)
                    return await load_without_locks(
                        tx, [command], rules, self.clock, self._timezone
                    )
        raise unavailable("The card is being linked.")

    async def get_allowance(self, database: Database, subscriber_id: int) -> Allowance | None:
        """Return a subscriber's allowance, or None if the subscriber does not exist.

        Uses a connection of `database`, as `assess` does, and reads without a lock, so the result
        may be out of date when it is used.
        """
        async with database.transaction() as tx:
            rules = await self.get_rules(tx)
            today = get_platform_day(self.clock(), self._timezone)
            wallet = await find_account(tx, subscriber_id, chart.WALLET)
            return None if wallet is None else build_allowance(wallet, rules, today)

    async def _run_worker(self) -> None:
        while self._pending or not self._is_stopping:
            await self._wakeup.wait()
            await self.gather_batch()
            batch = [
                self._pending.popleft() for _ in range(min(len(self._pending), MAX_BATCH_SIZE))
            ]
            if not self._pending and not self._is_stopping:
                self._wakeup.clear()
            if batch:
                started = perf_counter()
                outage = await self._process_batch(batch)
                if outage is not None and perf_counter() - started > MAX_OUTAGE_SECONDS:
                    self._fail_all(self._pending, outage)
                    self._pending.clear()

    async def gather_batch(self) -> None:
        """Wait while commands keep arriving, so that the batch grows.

        Two small batches cost more than a large one (docs/benchmark-details.md), and the event
        loop spends the time on the requests that submit the commands.
        """
        previous_count = 0
        while previous_count < len(self._pending) < MAX_BATCH_SIZE:
            previous_count = len(self._pending)
            for _ in range(_GATHER_LOOP_TURNS):
                await asyncio.sleep(0)

    async def _process_batch(self, batch: Sequence[PendingCommand]) -> ApiError | None:
        """Process a batch and resolve its futures; return an outage error, or None.

        If a batch of several commands fails for another reason, each is processed individually.
        """
        started, previous_retries = perf_counter(), self.batch_stats.retries
        commands = [pending.command for pending in batch]
        try:
            outcomes, timing = await self.run_with_retries(commands)
        except ApiError as outage:
            self._fail_all(batch, outage)
            return outage
        except Exception as error:
            if len(batch) > 1:
                await self._process_individually(batch)
                return None
            if isinstance(error, RejectedBeforeCommitError):
                if not batch[0].future.done():
                    batch[0].future.set_result(Outcome(None, error.code))
                return None
            log.error("ledger.command_failed", error=type(error).__name__, exc_info=True)
            self._fail_all(batch, ApiError(Code.INTERNAL_ERROR))
        else:
            for pending, outcome in zip(batch, outcomes, strict=True):
                if not pending.future.done():
                    pending.future.set_result(outcome)
            retries = self.batch_stats.retries - previous_retries
            self._record_batch(
                BatchReport(commands, outcomes, timing, perf_counter() - started, retries)
            )
        return None

    async def _process_individually(self, batch: Sequence[PendingCommand]) -> None:
        """Process commands one by one, so that only commands that cannot be stored fail.

        After a database outage, all remaining commands fail.
        """
        for index, pending in enumerate(batch):
            outage = await self._process_batch([pending])
            if outage is not None:
                self._fail_all(batch[index + 1 :], outage)
                return

    def _record_batch(self, report: BatchReport) -> None:
        size = len(report.commands)
        self.batch_stats.batches += 1
        self.batch_stats.commands += size
        self.batch_stats.largest_batch = max(self.batch_stats.largest_batch, size)
        self.replay_counter.count(report.outcomes)
        if telemetry.tracer is not None:
            trace_batch(report)
        self.on_batch(report)

    def _fail_all(self, batch: Collection[PendingCommand], error: ApiError) -> None:
        for pending in batch:
            if not pending.future.done():
                pending.future.set_exception(error)
                pending.future.exception()  # mark as retrieved, in case the caller was canceled
        self._report_failure([pending.command for pending in batch], error)

    def _reject(self, command: LedgerCommand, reason: str) -> ApiError:
        error = unavailable(f"{reason} The transaction was not executed.")
        self._report_failure([command], error)
        return error

    def _report_failure(self, commands: Sequence[LedgerCommand], error: ApiError) -> None:
        outcomes = [Outcome(None, error.code)] * len(commands)
        self.on_batch(BatchReport(commands, outcomes, outage=error))

    async def run_with_retries(
        self, commands: Sequence[LedgerCommand]
    ) -> tuple[list[Outcome], BatchTiming]:
        for attempt in range(_MAX_ATTEMPTS):
            try:
                return await self.run_batch(commands)
            except (
                asyncpg.DeadlockDetectedError,
                asyncpg.SerializationError,
                asyncpg.UniqueViolationError,  # two processes generated the same ID
                StaleLoadError,
            ):
                self.batch_stats.retries += 1
                if attempt == _MAX_ATTEMPTS - 1:
                    raise
        raise AssertionError

    async def run_batch(
        self, commands: Sequence[LedgerCommand]
    ) -> tuple[list[Outcome], BatchTiming]:
        started = perf_counter()
        async with self.database.transaction() as tx:
            if self._new_id.is_ahead:
                # Lists select transactions by ID range, so IDs must not run ahead of the clock.
                self._new_id.reset(await tx.fetchval("SELECT nextval('process_slots')"))
            rules = await self.get_rules(tx)
            state = await load(tx, commands, rules, self.clock, self._timezone)
            loaded = perf_counter()
            decisions = [self._decide(state, command) for command in commands]
            decided = perf_counter()
            await write(
                tx,
                state,
                decisions,
                self._new_id,
                self._wrong_pin_limit,
                commits=all(command.audit is None for command in commands),
            )
            outcomes = [decision.outcome for decision in decisions]
            for index, command in enumerate(commands):
                if command.audit is not None:
                    outcomes[index] = await self._run_before_commit(tx, command, outcomes[index])
            written = perf_counter()
        timing = BatchTiming(
            loaded - started, decided - loaded, written - decided, perf_counter() - written
        )
        return outcomes, timing

    def _decide(self, state: State, command: LedgerCommand) -> Decision:
        try:
            if isinstance(command, Command):
                decision = decide(
                    state, command, self.is_correct_pin, self._new_id, self._wrong_pin_limit
                )
            else:
                decision = self._decide_other(state, command)
        except Exception as error:
            log.error("ledger.decision_failed", error=type(error).__name__, exc_info=True)
            return Decision(outcome=Outcome(None, Code.INTERNAL_ERROR))
        apply_decision(state, decision)
        return decision

    def _decide_other(
        self, state: State, command: ReviewDecision | Reversal | RecallRequest | RecallDecision
    ) -> Decision:
        """Decide a command about an existing transaction."""
        match command:
            case ReviewDecision():
                return decide_review(state, command)
            case Reversal():
                return decide_reversal(state, command, self._new_id)
            case RecallRequest():
                return decide_recall_request(state, command, self._new_id)
            case RecallDecision():
                return decide_recall(state, command, self._new_id)

    async def _run_before_commit(
        self, tx: asyncpg.Connection, command: LedgerCommand, outcome: Outcome
    ) -> Outcome:
        if outcome.result is None or outcome.code is not None or outcome.replayed:
            return outcome
        assert self._before_commit is not None
        transaction = Transaction(tx, self.clock, self._new_id)
        try:
            related = await self._before_commit(transaction, command, outcome.result)
        except ApiError as error:
            # `_process_batch` treats an ApiError as an outage and would fail the whole batch.
            raise RuntimeError(f"the before-commit hook raised {error.code}") from error
        return msgspec.structs.replace(outcome, related=related)

    async def get_rules(self, tx: asyncpg.Connection) -> Rules:
        if self._rules is not None and self._signals.is_listening:
            return self._rules
        version = self._rules_version
        rules = await ledger_rules.load_rules(
            tx,
            self._currency,
            low_float_threshold=self.low_float_threshold,
            notification_kinds=self.notification_kinds,
        )
        if version == self._rules_version:
            self._rules = rules
        return rules

    def invalidate_rules(self) -> None:
        self._rules = None
        self._rules_version += 1
