"""The one way money moves: orders wait together, and one database transaction carries all of them.

While a batch is on its way to the database, arriving orders gather for the next one. Light load: a
batch of one. Heavy load: round trips and the disk's flush are shared by hundreds.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Final, NamedTuple, Self
from zoneinfo import ZoneInfo

import asyncpg
import msgspec
import structlog

from tapgate.clock import Clock, platform_day
from tapgate.errors import ApiError, Code, unavailable
from tapgate.ids import IdSource
from tapgate.ledger import rules as ledger_rules
from tapgate.ledger.allowance import Allowance, allowance
from tapgate.ledger.assess import Assessment, assess, order_of
from tapgate.ledger.commands import Command, Order, Outcome, Witness
from tapgate.ledger.decide import decide
from tapgate.ledger.load import LoadedTooEarlyError, load, look
from tapgate.ledger.pin_tries import PinCheck
from tapgate.ledger.replays import Replays
from tapgate.ledger.rules import Rules
from tapgate.ledger.settle import settle
from tapgate.ledger.state import Decision, State, apply
from tapgate.ledger.write import write
from tapgate.store.database import Database
from tapgate.store.signals import Signals

log = structlog.get_logger()

MAX_BATCH: Final = 500
#: More than a process answers at once: orders also come from elsewhere.
MAX_WAITING: Final = 2_000
_TRIES: Final = 3
#: How many turns of the event loop a request may take from its socket to the ledger.
_TURNS_FROM_SOCKET: Final = 4
#: One for the batch, one for rules and health.
_CONNECTIONS: Final = 2

#: Every statement of a batch looks rows up by their keys, whatever their number: one plan each,
#: made once and kept, also if the tables were empty then. So it must not be one that scans a table.
_SESSION: Final = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}


class Waiting(NamedTuple):
    order: Order
    result: asyncio.Future[Outcome]


#: Is told of every batch that was carried: its size, and how many seconds it took.
CarriedOne = Callable[[int, float], None]


class Batches(msgspec.Struct):
    """How batches form: what was carried so far."""

    batches: int = 0
    orders: int = 0
    largest: int = 0
    tried_again: int = 0


class Ledger:
    def __init__(
        self,
        database: Database,
        signals: Signals,
        *,
        currency: str,
        timezone: ZoneInfo,
        clock: Clock,
        new_id: IdSource,
        is_right_pin: PinCheck,
        float_low: int = 0,
        notices: frozenset[str] = frozenset(),
        carried_one: CarriedOne = lambda size, seconds: None,
    ) -> None:
        self._database = database
        self._signals = signals
        self._currency = currency
        self._timezone = timezone
        self._clock = clock
        self._new_id = new_id
        self._is_right_pin = is_right_pin
        self._float_low = float_low
        self._notices = notices
        self._carried_one = carried_one
        self._waiting: deque[Waiting] = deque()
        self._arrived = asyncio.Event()
        self._stopping = False
        #: One batch on its way at a time. A second beside it would only wait for the rows that the
        #: first has locked, and each would carry half as many (measured in docs/benchmarks.md).
        self._carrier: asyncio.Task[None] | None = None
        self._rules: Rules | None = None
        self._rules_version = 0
        self.carried = Batches()
        self.replays = Replays(clock)
        signals.on(ledger_rules.CHANGED, lambda _: self._forget_rules())
        signals.on_gap(self._forget_rules)

    @classmethod
    async def start(
        cls,
        url: str,
        signals: Signals,
        *,
        currency: str,
        timezone: ZoneInfo,
        clock: Clock,
        new_id: IdSource,
        is_right_pin: PinCheck,
        float_low: int = 0,
        notices: frozenset[str] = frozenset(),
        carried_one: CarriedOne = lambda size, seconds: None,
    ) -> Self:
        ledger = cls(
            await Database.connect(url, size=_CONNECTIONS, session=_SESSION),
            signals,
            currency=currency,
            timezone=timezone,
            clock=clock,
            new_id=new_id,
            is_right_pin=is_right_pin,
            float_low=float_low,
            notices=notices,
            carried_one=carried_one,
        )
        ledger._carrier = asyncio.create_task(ledger._work())
        return ledger

    async def stop(self) -> None:
        """What waits is still carried; nothing new is taken."""
        self._stopping = True
        self._arrived.set()
        if self._carrier is not None:
            await self._carrier
        try:
            await self.replays.write_down(self._database)
        except (ApiError, asyncpg.PostgresError) as error:
            log.warning("ledger.replays_lost", error=type(error).__name__)
        await self._database.close()

    async def healthy(self) -> bool:
        try:
            async with asyncio.timeout(2):
                await self._database.fetchval("SELECT 1")
        except (ApiError, TimeoutError, asyncpg.PostgresError):
            return False
        return True

    async def submit(self, order: Order) -> Outcome:
        """Carry out one order. 503 when too much is waiting or the database cannot be reached."""
        if self._stopping:
            raise unavailable("The service is stopping; nothing was moved")
        if len(self._waiting) >= MAX_WAITING:
            raise unavailable("Too much is waiting; nothing was moved")
        result: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append(Waiting(order, result))
        self._arrived.set()
        # A caller who goes away takes only its own waiting back: the order is carried all the same.
        return await result

    async def assess(
        self, database: Database, *, transaction_type: str, amount: int, subscriber_id: int | None
    ) -> Assessment:
        """What would be said of a transaction now; without a subscriber, its fee only.

        On connections of the caller's: those of the ledger are for moving money.
        """
        async with database.transaction() as tx:
            rules = await self._current_rules(tx)
            if subscriber_id is None:
                fee, fee_payer = rules.fee(transaction_type, amount)
                return Assessment(fee=fee, fee_payer=fee_payer)
            order = order_of(transaction_type, amount, subscriber_id)
            return assess(await look(tx, [order], rules, self._clock, self._timezone), order)

    async def allowance(self, database: Database, subscriber_id: int) -> Allowance | None:
        """What is left of a subscriber's limits by the ledger's own count, and its own clock.

        On connections of the caller's, too.
        """
        async with database.transaction() as tx:
            rules = await self._current_rules(tx)
            today = platform_day(self._clock(), self._timezone)
            return await allowance(tx, subscriber_id, rules, today)

    async def _work(self) -> None:
        while self._waiting or not self._stopping:
            await self._arrived.wait()
            await self._gather()
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_BATCH))]
            if not self._waiting and not self._stopping:
                self._arrived.clear()
            if batch:
                await self._carry(batch)

    async def _gather(self) -> None:
        """While more orders come in, the batch grows: there is work to do on them meanwhile, and
        two small batches cost more than a large one (measured in docs/benchmarks.md)."""
        there = 0
        while there < len(self._waiting) < MAX_BATCH:
            there = len(self._waiting)
            for _ in range(_TURNS_FROM_SOCKET):
                await asyncio.sleep(0)

    async def _carry(self, batch: Sequence[Waiting]) -> ApiError | None:
        """What is returned stands in the way of every order: the database is lost."""
        started = perf_counter()
        try:
            outcomes = await self._in_one_go([waiting.order for waiting in batch])
        except ApiError as lost:
            _answer_all(batch, lost)
            return lost
        except Exception as error:
            if len(batch) > 1:
                await self._carry_singly(batch)
                return None
            log.error("ledger.order_failed", error=type(error).__name__, exc_info=True)
            _answer_all(batch, ApiError(Code.INTERNAL_ERROR))
        else:
            self._count(len(batch), perf_counter() - started)
            self.replays.count(outcomes)
            for waiting, outcome in zip(batch, outcomes, strict=True):
                if not waiting.result.done():
                    waiting.result.set_result(outcome)
        return None

    async def _carry_singly(self, batch: Sequence[Waiting]) -> None:
        """Somebody's order cannot be stored: each on its own, so that only that one fails."""
        for number, waiting in enumerate(batch):
            lost = await self._carry([waiting])
            if lost is not None:
                _answer_all(batch[number + 1 :], lost)
                return

    def _count(self, size: int, seconds: float) -> None:
        self.carried.batches += 1
        self.carried.orders += size
        self.carried.largest = max(self.carried.largest, size)
        self._carried_one(size, seconds)

    async def _in_one_go(self, orders: Sequence[Order]) -> list[Outcome]:
        for attempt in range(_TRIES):
            try:
                return await self._run(orders)
            except (
                asyncpg.DeadlockDetectedError,
                asyncpg.SerializationError,
                asyncpg.UniqueViolationError,  # two processes made the same identifier
                LoadedTooEarlyError,
            ):
                self.carried.tried_again += 1
                if attempt == _TRIES - 1:
                    raise
        raise AssertionError

    async def _run(self, orders: Sequence[Order]) -> list[Outcome]:
        async with self._database.transaction() as tx:
            if self._new_id.is_ahead:
                # Lists find the transactions of a day by their identifiers.
                self._new_id.begin_again(await tx.fetchval("SELECT nextval('process_slots')"))
            rules = await self._current_rules(tx)
            state = await load(tx, orders, rules, self._clock, self._timezone)
            decisions = [self._decide(state, order) for order in orders]
            await write(tx, state, decisions, self._new_id)
            for order, decision in zip(orders, decisions, strict=True):
                if order.witness is not None:
                    await _have_witnessed(tx, order.witness, decision.outcome)
        return [decision.outcome for decision in decisions]

    def _decide(self, state: State, order: Order) -> Decision:
        try:
            if isinstance(order, Command):
                decision = decide(state, order, self._is_right_pin, self._new_id)
            else:
                decision = settle(state, order)
        except Exception as error:
            log.error("ledger.undecided", error=type(error).__name__, exc_info=True)
            return Decision(outcome=Outcome(None, Code.INTERNAL_ERROR))
        apply(state, decision)
        return decision

    async def _current_rules(self, tx: asyncpg.Connection) -> Rules:
        if self._rules is not None and self._signals.listening:
            return self._rules
        version = self._rules_version
        rules = await ledger_rules.load_rules(
            tx, self._currency, float_low=self._float_low, notices=self._notices
        )
        if version == self._rules_version:
            self._rules = rules
        return rules

    def _forget_rules(self) -> None:
        self._rules = None
        self._rules_version += 1


async def _have_witnessed(tx: asyncpg.Connection, witness: Witness, outcome: Outcome) -> None:
    if outcome.answer is None or outcome.code is not None or outcome.replayed:
        return
    try:
        await witness(tx, outcome.answer)
    except ApiError as refusal:
        # Told as what it is, it would look like an outage, which fails the whole batch.
        raise RuntimeError(f"an order was refused by its witness: {refusal.code}") from refusal


def _answer_all(batch: Sequence[Waiting], error: ApiError) -> None:
    for waiting in batch:
        if not waiting.result.done():
            waiting.result.set_exception(error)
            waiting.result.exception()  # seen, also if whoever asked has gone
