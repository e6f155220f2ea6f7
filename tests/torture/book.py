"""What the clients know: what they asked for, what they were told, and what everybody must have
then. Plain whole numbers, fed by nothing but the plan and the answers."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from torture.plan import PAYMENTS, Kind, Operation
from torture.wire import Answer

#: Names of accounts that nobody of the plan holds.
FEES: Final = "fees"
EXPENSE: Final = "commission_expense"
CASH: Final = "cash"

#: Refusals that leave nothing behind: the name may be used again.
FREE: Final = frozenset(
    {"INVALID_PIN", "ACCOUNT_LOCKED", "REFUND_EXCEEDS_REMAINING", "ALREADY_REFUNDED"}
)
_WRONG_PIN: Final = frozenset({"INVALID_PIN", "ACCOUNT_LOCKED"})
_NOTHING_LEFT: Final = frozenset({"REFUND_EXCEEDS_REMAINING", "ALREADY_REFUNDED"})
_NO_FUNDS: Final = frozenset({"INSUFFICIENT_FUNDS"})
_COMMISSION_FROM: Final = 10_00

#: What a field of a receipt is to the clients.
_PAID: Final = {
    "amount": "amount",
    "fee_amount": "fee",
    "remaining_balance": "payer_balance",
}
FIGURES: Final[dict[Kind, dict[str, str]]] = {
    "pos": _PAID,
    "pos_pin": _PAID,
    "in_app": _PAID,
    "p2p": {"amount": "amount", "fee_amount": "fee", "sender_new_balance": "payer_balance"},
    "cash_in": {
        "amount": "amount",
        "commission_earned": "commission",
        "agent_balance": "payer_balance",
        "subscriber_balance": "payee_balance",
    },
    "cash_out": {
        "amount": "amount",
        "agent_balance": "payee_balance",
        "subscriber_balance": "payer_balance",
    },
    "top_up": {"amount": "amount", "new_balance": "payee_balance"},
    "refund": {"amount": "amount", "refundable_amount": "refundable"},
}


class Told(msgspec.Struct, frozen=True):
    """A definitive answer: a transaction with its figures, or why there is none."""

    code: str  # empty: it was done
    transaction: str = ""
    status: str = ""
    figures: dict[str, int] = {}

    @property
    def done(self) -> bool:
        return not self.code

    @property
    def recorded(self) -> bool:
        """Done, or declined under its name."""
        return self.code not in FREE


def told(operation: Operation, answer: Answer) -> Told:
    if answer.status >= 300:
        return Told(answer.code)
    body = answer.body
    figures = {name: minor(body[field]) for field, name in FIGURES[operation.kind].items()}
    return Told("", body["transaction_id"], body["status"], figures)


def minor(shown: str) -> int:
    """`1,234.50 SLE` or `1234.50` in minor units."""
    return int(shown.removesuffix(" SLE").replace(",", "").replace(".", ""))


def share(amount: int, hundredths_of_percent: int) -> int:
    """Half up."""
    return (amount * hundredths_of_percent + 5_000) // 10_000


def fee_of(operation: Operation, amount: int) -> int:
    if operation.kind in PAYMENTS:
        return share(amount, 100)
    if operation.kind == "p2p":
        return share(amount, 150)
    return 0


def allowed_refusals(operation: Operation) -> frozenset[str]:
    """What may be said to it instead of doing it."""
    if operation.wrong_pin:
        return _WRONG_PIN
    if operation.kind == "refund":
        return _NOTHING_LEFT | _NO_FUNDS
    if operation.kind in ("cash_in", "top_up"):
        return frozenset()
    return _NO_FUNDS


class Standing(msgspec.Struct):
    """One operation, and how it stands with it."""

    operation: Operation
    told: Told | None = None
    attempts: int = 0
    unanswered: int = 0
    done_before: bool = False  # the first answer was a repetition of one that got lost
    original: str = ""  # the transaction that a refund is of


class Book:
    """All operations so far by name, and everybody's balance."""

    def __init__(self, funds: Mapping[str, int]) -> None:
        self.standings: dict[str, Standing] = {}
        self.balances: Counter[str] = Counter(funds)
        self.balances[CASH] = -sum(funds.values())
        self.refunded: Counter[str] = Counter()  # payment -> what was given back of it
        self._cashed_out: set[tuple[str, str]] = set()  # (customer, agent)
        self.transactions = 0  # that there must be, declined ones included

    def settle(self, standing: Standing) -> None:
        """Once for each operation, when it has been answered."""
        assert standing.told is not None
        self.transactions += standing.told.recorded
        for name, change in self.effect(standing).items():
            self.balances[name] += change
        if standing.operation.kind == "refund" and standing.told.done:
            self.refunded[standing.operation.of] += standing.told.figures["amount"]
        if standing.operation.kind == "cash_out":
            self._cashed_out.add((standing.operation.payer, standing.operation.payee))

    def effect(self, standing: Standing) -> dict[str, int]:
        """By how much it changed whose balance."""
        asked, told = standing.operation, standing.told
        if told is None or not told.done:
            return {}
        amount = told.figures["amount"]
        fee = fee_of(asked, amount)
        if asked.kind in PAYMENTS:
            moved = {asked.payer: -amount, asked.payee: amount - fee, FEES: fee}
        elif asked.kind == "refund":
            back = self._fee_given_back(asked, told)
            moved = {asked.payer: back - amount, asked.payee: amount, FEES: -back}
        elif asked.kind == "cash_in":
            earned = told.figures["commission"]
            moved = {asked.payer: -amount, asked.payee: amount}
            moved |= {commission(asked.payer): earned, EXPENSE: -earned}
        else:
            moved = {asked.payer: -amount - fee, asked.payee: amount, FEES: fee}
        return {name: change for name, change in moved.items() if change}

    def _fee_given_back(self, asked: Operation, told: Told) -> int:
        """By the refund that leaves nothing."""
        if told.figures["refundable"]:
            return 0
        paid = self.standings[asked.of].operation
        assert paid.amount is not None
        return fee_of(paid, paid.amount)

    def figures(self, standing: Standing) -> dict[str, int]:
        """What a receipt must say, where the clients can know it."""
        asked, told = standing.operation, standing.told
        assert told is not None
        expected: dict[str, int] = {}
        if asked.amount is not None:
            expected["amount"] = asked.amount
        amount = told.figures["amount"]
        if "fee" in told.figures:
            expected["fee"] = fee_of(asked, amount)
        if asked.kind == "cash_in":
            # What was cashed out before earns nothing, and a rounding error is carried over.
            earning = amount if amount >= _COMMISSION_FROM else 0
            least = 0 if (asked.payee, asked.payer) in self._cashed_out else earning // 100
            most = -(-earning // 100)
            expected["commission"] = min(max(least, told.figures["commission"]), most)
        return expected


def commission(agent: str) -> str:
    """The name of an agent's other account."""
    return f"{agent} commission"
