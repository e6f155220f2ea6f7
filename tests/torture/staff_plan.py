"""Staff work between the other operations: fundings, reversals, recalls, payouts, batches, closes.

Every rejection in this plan is final, so that a retry cannot succeed later: a recalled transfer is
reversed only if the recall returns the money, and no sender has more open recalls than allowed.
"""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from torture.plan import (
    AGENTS,
    BANK,
    CASH,
    FUNDED_CUSTOMERS,
    IN_TRANSIT,
    MAX_AMOUNT,
    MERCHANTS,
    REFUND_FRACTIONS,
    Kind,
    Operation,
    add_delivery_options,
)

#: Phone number without an account, which makes a batch line invalid.
NOBODY: Final = "nobody"
REVERSIBLE: Final = frozenset({"p2p", "cash_in", "cash_out", "top_up"})
#: Recall decisions. A transfer is also reversed if its recall returns the money.
RETURN, RELEASE = "return", "release"
#: Retention jobs delete what the final reconciliation needs if a run lasts for months.
_MAX_DAYS: Final = 20
_MAX_RECALLS_PER_SENDER: Final = 3
_RECALL_RATE: Final = 0.3
_REVERSAL_RATE: Final = 0.2
_PAYOUT_ENDS: Final[Sequence[Sequence[Kind]]] = (
    (),
    ("payout_cancel",),
    ("payout_cancel",),
    ("payout_paid",),
    ("payout_paid", "payout_returned"),
)


class StaffWork(msgspec.Struct, frozen=True, kw_only=True):
    """Work in each round."""

    fundings: int = 0  # of agents, which need an approval
    corrections: bool = False  # reversals and recalls
    payouts: int = 0
    batch_lines: int = 0  # of one batch
    rounds_per_day: int = 0  # the day ends before every round with this number

    def count_days(self, number: int) -> int:
        """Return how many days have ended before a round."""
        days = (number - 1) // self.rounds_per_day if self.rounds_per_day else 0
        return min(days, _MAX_DAYS)


NO_WORK: Final = StaffWork()


class StaffPlan:
    def __init__(self, work: StaffWork, seed: int, number: int) -> None:
        self._work = work
        self._name = f"{seed}-{number}"
        self._number = number
        self._rng = random.Random(f"{seed} staff {number}")

    def add(self, operations: Sequence[Operation]) -> list[Operation]:
        """Place the work between the operations, what follows another operation after it."""
        work, created = self._work, list(operations)
        for index in range(work.fundings):
            self._insert(created, self._build("fund", f"f{index}", CASH, self._choose(AGENTS)))
        if work.corrections:
            for following in self._build_corrections(operations):
                self._insert(created, following)
        for index in range(work.payouts):
            for following in self._build_payout(index):
                self._insert(created, following)
        if work.batch_lines:
            # Early, so that a fault strikes while it runs.
            created.insert(self._rng.randint(0, len(created) // 4), self._build_batch())
        if days := work.count_days(self._number):
            closing = self._build("day_close", "d", "", "", amount=None)
            self._insert(created, msgspec.structs.replace(closing, day=days - 1))
        return created

    def _insert(self, operations: list[Operation], operation: Operation) -> None:
        keys = [item.idempotency_key for item in operations]
        first = keys.index(operation.original_key) + 1 if operation.original_key else 0
        operations.insert(self._rng.randint(first, len(operations)), operation)

    def _choose(self, names: Sequence[str]) -> str:
        return self._rng.choice(names)

    def _build(
        self, kind: Kind, name: str, payer: str, payee: str, *, amount: int | None = 0
    ) -> Operation:
        operation = Operation(
            idempotency_key=f"{self._name}-{name}",
            kind=kind,
            payer=payer,
            payee=payee,
            amount=self._rng.randrange(1, MAX_AMOUNT) if amount == 0 else amount,
        )
        operation = add_delivery_options(self._rng, operation)
        has_body = kind in ("reversal", "payout")
        return msgspec.structs.replace(
            operation, sends_conflict=operation.sends_conflict and has_body
        )

    def _build_corrections(self, operations: Sequence[Operation]) -> list[Operation]:
        created: list[Operation] = []
        recalls: Counter[str] = Counter()
        for original in operations:
            if original.kind not in REVERSIBLE or original.wrong_pin:
                continue
            answer = ""
            if (
                original.kind == "p2p"
                and original.payee in FUNDED_CUSTOMERS
                and recalls[original.payer] < _MAX_RECALLS_PER_SENDER
                and self._rng.random() < _RECALL_RATE
            ):
                recalls[original.payer] += 1
                answer = self._choose((RETURN, RETURN, RELEASE))
                recall = self._follow("recall", f"c{len(created)}", original, original.amount)
                created.append(msgspec.structs.replace(recall, answer=answer))
            if answer != RELEASE and self._rng.random() < _REVERSAL_RATE:
                assert original.amount is not None
                for fraction in self._rng.choice(REFUND_FRACTIONS):
                    amount = None if fraction is None else max(1, int(original.amount * fraction))
                    created.append(self._follow("reversal", f"c{len(created)}", original, amount))
        return created

    def _build_payout(self, index: int) -> list[Operation]:
        owner = self._choose((*MERCHANTS, *AGENTS))
        created = [self._build("payout", f"p{index}", owner, IN_TRANSIT)]
        for kind in self._rng.choice(_PAYOUT_ENDS):
            following = self._follow(kind, f"p{index}-{kind}", created[-1], created[0].amount)
            payer = CASH if kind == "payout_returned" else IN_TRANSIT
            payee = CASH if kind == "payout_paid" else owner
            created.append(msgspec.structs.replace(following, payer=payer, payee=payee))
        return created

    def _follow(self, kind: Kind, name: str, original: Operation, amount: int | None) -> Operation:
        operation = self._build(kind, name, original.payee, original.payer, amount=amount)
        return msgspec.structs.replace(operation, original_key=original.idempotency_key)

    def _build_batch(self) -> Operation:
        rng = self._rng
        lines = tuple(
            (
                NOBODY if rng.random() < 0.03 else rng.choice(FUNDED_CUSTOMERS),
                rng.randrange(1, MAX_AMOUNT),
            )
            for _ in range(self._work.batch_lines)
        )
        batch = self._build("batch", "b", rng.choice((BANK, CASH)), "", amount=None)
        return msgspec.structs.replace(batch, lines=lines, retries_immediately=True)
