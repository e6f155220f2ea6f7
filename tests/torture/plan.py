"""Round plan: operations, duplicates, disconnects and faults.

The plan depends only on the seed and the round number, so the same seed gives the same plan.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal

import msgspec

Kind = Literal[
    "pos",
    "pos_pin",
    "in_app",
    "p2p",
    "cash_in",
    "cash_out",
    "top_up",
    "refund",
    # Staff work: see `staff_plan`.
    "fund",
    "reversal",
    "recall",
    "payout",
    "payout_cancel",
    "payout_paid",
    "payout_returned",
    "batch",
    "batch_line",
    "day_close",
]
#: Where the connection is cut: in the head, in the body, or before the response.
CutPoint = Literal["head", "body", "response"]

PAYMENTS: Final = frozenset({"pos", "pos_pin", "in_app"})

#: Customers who have more than they can spend.
FUNDED_CUSTOMERS: Final = [f"customer-{number}" for number in range(12)]
#: Customers who can afford only some of their payments.
LOW_BALANCE_CUSTOMERS: Final = ["tight-0", "tight-1"]
#: Customers who cannot afford any of their payments.
UNFUNDED_CUSTOMERS: Final = ["poor-0", "poor-1"]
#: A customer who always sends a wrong PIN.
WRONG_PIN_CUSTOMER: Final = "guessing"
#: Customers whose cards sign their taps.
SIGNING_CUSTOMERS: Final = [*FUNDED_CUSTOMERS[::2], "tight-1", "poor-1"]
MERCHANTS: Final = ["merchant-0", "merchant-1"]
AGENTS: Final = ["agent-0", "agent-1"]
BANK: Final = "bank"
#: The platform's own accounts: agents are funded from cash, and payouts are in transit.
CASH: Final = "cash"
IN_TRANSIT: Final = "payouts_in_transit"

#: More than unfunded customers have, in minor units.
UNAFFORDABLE_AMOUNT: Final = 50_00
MAX_AMOUNT: Final = 40_00
_DEFAULT_CUT_RATE: Final = 0.03
#: Approximate number of operations of the previous round to replay.
_REPLAYS_OF_PREVIOUS_ROUND: Final = 10
#: Relative weights, 27 in total.
_KIND_WEIGHTS: Final[dict[Kind, int]] = {
    "pos": 5,
    "pos_pin": 5,
    "in_app": 4,
    "p2p": 5,
    "cash_in": 3,
    "cash_out": 2,
    "top_up": 3,
}

#: Refunded payment fractions; None is the remaining amount.
REFUND_FRACTIONS: Final[Sequence[Sequence[float | None]]] = (
    [None],
    [None],
    [0.5],
    [0.3, 0.3, 0.3],
    [0.5, 0.5],
    [0.6, 0.6],
    [None, None],
    [0.4, None, None],
    [1.5],
    [0.25, 1.5, None],
)

FAULT_KINDS: Final = (
    "kill a worker",
    "kill all workers",
    "kill the postmaster",
    "kill a backend",
    "kill the supervisor",
    "kill everything",
    "kill everything twice",
    "drop many connections",
    "stop a worker",
    "terminate the ledger's session",
)
#: These faults restart everything, so no other fault follows in the same round.
_RESTARTING_FAULTS: Final = frozenset(
    {"kill the supervisor", "kill everything", "kill everything twice"}
)


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    idempotency_key: str  # request id, or a top-up's reference
    kind: Kind
    payer: str
    payee: str
    amount: int | None  # None: the full remaining amount, or none
    original_key: str = ""  # key of the operation that this one follows, such as a refund
    answer: str = ""  # how a recall ends
    lines: tuple[tuple[str, int], ...] = ()  # receivers and amounts of a batch
    day: int = 0  # number of the day to close
    wrong_pin: bool = False
    duplicates: int = 0  # concurrent copies on other connections
    cut_point: CutPoint | None = None
    retries_immediately: bool = True  # retry immediately; otherwise after the gateway has recovered
    sends_conflict: bool = False  # later sends different content under the same key
    is_replayed: bool = False  # replayed after all operations are acknowledged
    copied_key: str = ""  # key for the payment whose tap this payment sends too

    @property
    def round_name(self) -> str:
        return "-".join(self.idempotency_key.split("-")[:2])


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    after_operations: int  # number of operations sent before the fault
    delay: float  # in seconds, at most 0.015
    choice: int  # index for the worker or backend to hit, modulo their number
    duration: float = 0.0  # seconds for which a worker is stopped, or before the second kill


class RoundPlan(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    operations: list[Operation]
    faults: list[Fault]
    replayed_keys: list[str] = []  # operation keys from the previous round


def build_round(
    seed: int,
    number: int,
    *,
    operations: int | None = None,
    previous_operations: int | None = None,
    add_staff_work: Callable[[Sequence[Operation]], list[Operation]] = list,
) -> RoundPlan:
    """Build a round. The numbers of operations, without refunds, are chosen unless given.

    `add_staff_work` adds operations of staff between the others: see `staff_plan`.
    """
    faults = _build_faults(random.Random(f"{seed} disasters {number}"))
    many_cuts = any(fault.kind == "drop many connections" for fault in faults)
    planned = _build_operations(
        seed, number, cut_rate=0.3 if many_cuts else _DEFAULT_CUT_RATE, count=operations
    )
    refunds = _build_refunds(
        seed, number, [operation for operation in planned if operation.kind in PAYMENTS]
    )
    replayed_keys: list[str] = []
    if number > 1:
        previous = _build_operations(
            seed, number - 1, cut_rate=0, count=previous_operations or operations
        )
        replayed_keys = [
            operation.idempotency_key
            for operation in previous[:: max(1, len(previous) // _REPLAYS_OF_PREVIOUS_ROUND)]
        ]
        refunds += _build_late_refunds(
            seed, number, [operation for operation in previous if operation.kind in PAYMENTS]
        )
    planned = list(_add_copies(seed, number, planned))
    interleaved = list(_interleave(random.Random(f"{seed} order {number}"), planned, refunds))
    interleaved = add_staff_work(interleaved)
    max_position = max(1, len(interleaved) * 3 // 4)
    return RoundPlan(
        number=number,
        operations=interleaved,
        replayed_keys=replayed_keys,
        faults=[
            msgspec.structs.replace(
                fault, after_operations=1 + fault.after_operations % max_position
            )
            for fault in faults
        ],
    )


def _build_faults(rng: random.Random) -> list[Fault]:
    first = rng.choice(FAULT_KINDS)
    kinds = [first]
    if first not in _RESTARTING_FAULTS and rng.random() < 0.35:
        kinds.append(
            rng.choice([item for item in FAULT_KINDS if item not in (*_RESTARTING_FAULTS, first)])
        )
    return [
        Fault(
            kind=kind,
            after_operations=rng.randrange(10, 1_000_000),
            delay=rng.choice((0.0, rng.uniform(0, 0.015))),
            choice=rng.randrange(1_000),
            duration=rng.choice((0.2, 0.5, 1.3)),
        )
        for kind in kinds
    ]


def _build_operations(
    seed: int, number: int, *, cut_rate: float, count: int | None
) -> list[Operation]:
    """Build all operations except refunds; the cut rate affects only their cut points."""
    rng = random.Random(f"{seed} orders {number}")
    cut_rng = random.Random(f"{seed} cuts {number}")
    total = count if count is not None else rng.randrange(150, 260)
    created = []
    for index in range(total):
        operation = _build_operation(rng, f"{seed}-{number}-{index}")
        if cut_rng.random() < cut_rate:
            cut_point: CutPoint = cut_rng.choice(("head", "body", "response", "response"))
            operation = msgspec.structs.replace(operation, cut_point=cut_point)
        created.append(operation)
    return created


def _build_operation(rng: random.Random, key: str) -> Operation:
    (kind,) = rng.choices(list(_KIND_WEIGHTS), list(_KIND_WEIGHTS.values()))
    payer, payee = _choose_parties(rng, kind)
    amount = rng.randrange(1, MAX_AMOUNT)
    if payer in UNFUNDED_CUSTOMERS:
        amount += UNAFFORDABLE_AMOUNT
    operation = Operation(
        idempotency_key=key,
        kind=kind,
        payer=payer,
        payee=payee,
        amount=amount,
        wrong_pin=payer == WRONG_PIN_CUSTOMER,
    )
    return add_delivery_options(rng, operation)


def add_delivery_options(rng: random.Random, operation: Operation) -> Operation:
    """Add duplicates, retry behavior, conflicts and replays to an operation."""
    return msgspec.structs.replace(
        operation,
        duplicates=rng.choice((0, 0, 0, 0, 0, 0, 0, 1, 1, 2)),
        retries_immediately=rng.random() < 0.5,
        sends_conflict=rng.random() < 0.06,
        is_replayed=rng.random() < 0.2,
    )


def _choose_parties(rng: random.Random, kind: Kind) -> tuple[str, str]:
    spender = _choose_payer(rng, kind)
    if kind in PAYMENTS:
        return spender, rng.choice(MERCHANTS)
    if kind == "p2p":
        friend = rng.choice(
            [item for item in (*FUNDED_CUSTOMERS, *LOW_BALANCE_CUSTOMERS) if item != spender]
        )
        return spender, friend
    if kind == "cash_in":
        return rng.choice(AGENTS), rng.choice((*FUNDED_CUSTOMERS, *LOW_BALANCE_CUSTOMERS))
    if kind == "cash_out":
        return spender, rng.choice(AGENTS)
    return BANK, rng.choice((*FUNDED_CUSTOMERS, *FUNDED_CUSTOMERS, *LOW_BALANCE_CUSTOMERS))


def _choose_payer(rng: random.Random, kind: Kind) -> str:
    draw = rng.random()
    if draw < 0.06:
        return rng.choice(UNFUNDED_CUSTOMERS)
    if draw < 0.16:
        return rng.choice(LOW_BALANCE_CUSTOMERS)
    if draw < 0.18 and kind == "pos_pin":
        return WRONG_PIN_CUSTOMER
    return rng.choice(FUNDED_CUSTOMERS)


def _build_refunds(seed: int, number: int, payments: Sequence[Operation]) -> list[Operation]:
    """Build full, partial, excessive and concurrent refunds for payments in the same round."""
    rng = random.Random(f"{seed} refunds {number}")
    created: list[Operation] = []
    for payment in payments:
        if rng.random() < 0.3:
            for fraction in rng.choice(REFUND_FRACTIONS):
                key = f"{seed}-{number}-r{len(created)}"
                created.append(_build_refund(rng, key, payment, fraction))
    return created


def _build_late_refunds(seed: int, number: int, payments: Sequence[Operation]) -> list[Operation]:
    """Build refunds for payments in the previous round."""
    rng = random.Random(f"{seed} late refunds {number}")
    chosen = rng.sample(list(payments), min(5, len(payments)))
    return [
        _build_refund(rng, f"{seed}-{number}-l{index}", payment, rng.choice((None, 0.4)))
        for index, payment in enumerate(chosen)
    ]


def _add_copies(seed: int, number: int, operations: Sequence[Operation]) -> Iterator[Operation]:
    """Place other payments with the same tap next to some payments, so that they are concurrent."""
    rng = random.Random(f"{seed} copies {number}")
    for operation in operations:
        copies = []
        if operation.kind in PAYMENTS and operation.payer in SIGNING_CUSTOMERS:
            copies = [
                Operation(
                    idempotency_key=f"{operation.idempotency_key}-c{index}",
                    kind=rng.choice(("pos", "in_app")),
                    payer=operation.payer,
                    payee=rng.choice(MERCHANTS),
                    amount=operation.amount,
                    copied_key=operation.idempotency_key,
                )
                for index in range(rng.choice((0, 0, 0, 1, 2)))
            ]
        created = [operation, *(add_delivery_options(rng, copy) for copy in copies)]
        rng.shuffle(created)
        yield from created


def _build_refund(
    rng: random.Random, key: str, payment: Operation, fraction: float | None
) -> Operation:
    assert payment.amount is not None
    refund = Operation(
        idempotency_key=key,
        kind="refund",
        payer=payment.payee,
        payee=payment.payer,
        amount=None if fraction is None else max(1, int(payment.amount * fraction)),
        original_key=payment.idempotency_key,
    )
    return add_delivery_options(rng, refund)


def _interleave(
    rng: random.Random, operations: Sequence[Operation], refunds: Sequence[Operation]
) -> Iterator[Operation]:
    """Place refunds some time after their payment, and refunds of one payment close together."""
    positions = {
        operation.idempotency_key: position for position, operation in enumerate(operations)
    }
    due_refunds: dict[int, list[Operation]] = {}
    waits: dict[str, int] = {}
    for refund in refunds:
        wait = waits.setdefault(refund.original_key, rng.randrange(8, 60))
        due_refunds.setdefault(positions.get(refund.original_key, 0) + wait, []).append(refund)
    for position, planned in enumerate(operations):
        yield planned
        yield from due_refunds.pop(position, ())
    for late in sorted(due_refunds):
        yield from due_refunds[late]
