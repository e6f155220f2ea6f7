"""Model of payments that are refunded, reversed, recalled and disputed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Final

from tapgate_client.errors import Code

DAY: Final = timedelta(days=1)
#: Steps with at least this index choose among all movements.
ANY_MOVEMENT: Final = 20
WALLETS: Final = ("w0", "w1", "w2")


@dataclass
class Movement:
    """A transaction that moved money, and what went back of it."""

    id: int
    kind: str
    payer: str
    payee: str
    amount: int
    fee: int
    commission: int
    at: datetime
    given_back: int = 0
    fee_back: int = 0
    commission_back: int = 0
    #: None, or the recall's status.
    recall: str | None = None
    held: int = 0
    #: None, or the dispute's status and amount.
    dispute: str | None = None
    disputed: int = 0

    def calculate_share(self, total: int, amount: int) -> int:
        """Return the part of a total that goes back with an amount, by exact fractions."""
        share = Fraction(total, self.amount)
        return int(share * (self.given_back + amount)) - int(share * self.given_back)


@dataclass
class Model:
    now: datetime
    balances: dict[str, int]
    held: dict[str, int] = field(default_factory=lambda: dict.fromkeys(WALLETS, 0))
    movements: list[Movement] = field(default_factory=list)

    def get_available(self, name: str) -> int:
        return self.balances[name] - self.held.get(name, 0)

    def move(self, payer: str, payee: str, amount: int) -> None:
        self.balances[payer] -= amount
        self.balances[payee] += amount

    def choose(self, step: str, index: int) -> Movement | None:
        """Return a movement that the step fits, or with a high index any movement."""
        fits: dict[str, Callable[[Movement], bool]] = {
            "refund": lambda row: row.kind == "pay",
            "reverse": lambda row: row.kind != "pay",
            "recall": lambda row: row.kind == "p2p",
            "end": lambda row: row.recall is not None,
            "dispute": lambda row: row.kind == "pay",
            "end dispute": lambda row: row.dispute is not None,
        }
        rows = self.movements
        if index < ANY_MOVEMENT:
            rows = [row for row in rows if fits[step](row)]
        return rows[index % len(rows)] if rows else None

    def reverse(self, row: Movement, amount: int | None) -> Code | None:
        remaining = row.amount - row.given_back
        if row.kind == "pay" or remaining == 0 or row.recall == "open":
            return Code.NOT_REVERSIBLE
        amount = remaining if amount is None else amount
        if amount > remaining:
            return Code.REVERSAL_EXCEEDS_REMAINING
        commission = row.calculate_share(row.commission, amount)
        if self.get_available(row.payee) < amount or self.balances["commission"] < commission:
            return Code.INSUFFICIENT_FUNDS
        self._give_back(row, amount, row.calculate_share(row.fee, amount), commission)
        return None

    def _give_back(self, row: Movement, amount: int, fee: int, commission: int) -> None:
        self.move(row.payee, row.payer, amount)
        self.move("fees", row.payer, fee)
        self.move("commission", "expense", commission)
        row.given_back += amount
        row.fee_back += fee
        row.commission_back += commission

    def refund(self, row: Movement, amount: int | None) -> Code | None:
        remaining = row.amount - row.given_back
        if row.kind != "pay":
            return Code.TRANSACTION_NOT_FOUND
        if remaining == 0:
            return Code.ALREADY_REFUNDED
        amount = remaining if amount is None else amount
        if amount > remaining:
            return Code.REFUND_EXCEEDS_REMAINING
        fee = row.fee if amount == remaining else 0
        if self.balances["merchant"] + fee < amount:
            return Code.INSUFFICIENT_FUNDS
        self.move("fees", "merchant", fee)
        self.move("merchant", row.payer, amount)
        row.given_back += amount
        row.fee_back += fee
        return None

    def recall(self, row: Movement) -> Code | None:
        is_open = [other for other in self.movements if other.recall == "open"]
        count = sum(other.payer == row.payer for other in is_open)
        if row.kind != "p2p" or row.given_back or row.recall is not None or self.now > row.at + DAY:
            return Code.NOT_RECALLABLE
        if count >= 3:
            return Code.NOT_RECALLABLE
        row.recall, row.held = "open", min(row.amount, self.get_available(row.payee))
        self.held[row.payee] += row.held
        return None

    def end(self, row: Movement, status: str) -> Code | None:
        if row.recall is None:
            return Code.RECALL_NOT_FOUND
        if row.recall != "open":
            return Code.RECALL_NOT_OPEN
        if status == "returned" and not row.held:
            return Code.INSUFFICIENT_FUNDS
        self.held[row.payee] -= row.held
        row.recall = status
        if status == "returned":
            self._give_back(row, row.held, 0, 0)
        return None

    def open_dispute(self, row: Movement, amount: int | None) -> Code | None:
        remaining = row.amount - row.given_back
        if row.dispute is not None:
            return Code.ALREADY_DISPUTED
        if row.kind != "pay" or remaining == 0:
            return Code.NOT_DISPUTABLE
        if amount is not None and amount > row.amount:
            return Code.VALIDATION_FAILED
        row.dispute, row.disputed = "open", remaining if amount is None else amount
        return None

    def end_dispute(self, row: Movement, status: str) -> Code | None:
        """Refund at most what remains, or only store the status."""
        if row.dispute is None:
            return Code.DISPUTE_NOT_FOUND
        if row.dispute not in ("open", "answered"):
            return Code.DISPUTE_NOT_OPEN
        remaining = row.amount - row.given_back
        if status == "refunded" and remaining:
            code = self.refund(row, min(row.disputed, remaining))
            if code is not None:
                return code
        row.dispute = status
        return None

    def sum_sent(self, payer: str) -> tuple[int, int]:
        """Return what counts toward the daily and the monthly limit: what did not come back."""
        sent = [row for row in self.movements if row.payer == payer]
        today = [row for row in sent if row.at.date() == self.now.date()]
        month = [row for row in sent if row.at.month == self.now.month]
        return (
            sum(row.amount - row.given_back for row in today),
            sum(row.amount - row.given_back for row in month),
        )
