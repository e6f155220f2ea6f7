"""Ledger reference model: dictionaries that process one command at a time.

The ledger is tested against it.
"""

from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any

from tapgate.ledger import chart
from tapgate_client.errors import Code

PIN = "1234"
CHILD_PIN = "4321"

# In minor units. The limits are low, so that random amounts exceed each of them.
LIMITS = {
    1: {"max_balance": 2_000, "transaction": 700, "day": 1_500, "month": 2_000, "no_pin": 50},
    2: {"max_balance": 4_000, "transaction": 900, "day": 2_500, "month": 3_000, "no_pin": 80},
}
REVIEW_ABOVE = 600
MAX_PAYMENTS_PER_DAY = 9
MAX_WRONG_PINS_PER_DAY = 4  # wallet and child card combined; further ones block payments
CHILD_LIMIT = 300
REVIEW_CASH_ABOVE = 280  # cash-in checks the payee, cash-out the agent
MAX_CASH_OPERATIONS_PER_DAY = 8  # per agent
COMMISSION_RATES = {chart.AGENT_CASHIN: 1_000, chart.AGENT_CASHOUT: 700}  # thousandths of a percent
MIN_COMMISSIONED_AMOUNT = 50
DAY, WEEK = timedelta(days=1), timedelta(days=7)
OVERDRAFT = 200
HALF_HOUR = timedelta(minutes=30)
WALLETS = {"w0": 1, "w1": 1, "w2": 2}
CARDS = {"c0": "w0", "k0": "w0", "c1": "w1"}  # k0 is a child card
MONITORED_TYPES = ("transfer_p2p", "transfer", "pos_payment", "online_payment")
LIMITED_TYPES = (*MONITORED_TYPES, "agent_cashout")


@dataclass
class Step:
    """One command or wait.

    An `amount` of None refunds the remaining amount, or pays out the available commission.
    """

    kind: str
    payer: str = ""
    payee: str = ""
    amount: int | None = 0
    pin: str | None = None
    request: str | None = None
    original: int | None = None  # index into the transactions so far
    release: bool = True
    hours: int = 0


@dataclass
class ModelTransaction:
    """Transaction in the model."""

    kind: str
    payer: str
    payee: str
    card: str | None
    amount: int
    fee: int
    status: str
    created_at: datetime
    refunded: int = 0
    posted_at: datetime | None = None
    is_unpinned: bool = False
    unmatched_cash: int = 0  # cash not yet matched with a later movement in the opposite direction


@dataclass
class ReferenceModel:
    now: datetime
    balances: dict[str, int]
    held: dict[str, int] = field(default_factory=dict)
    pin_failures: dict[str, int] = field(default_factory=dict)
    locked: dict[str, datetime] = field(default_factory=dict)
    wrong_pins: list[tuple[str, datetime]] = field(default_factory=list)
    spent_without_pin: dict[tuple[str, date], int] = field(default_factory=dict)
    transactions: list[ModelTransaction] = field(default_factory=list)
    outcomes_by_request: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    accrued_commission: int = 0  # earned by the agent, in thousandths of a percent of a minor unit

    def run(self, step: Step) -> Code | str | None:
        """Return the failure code or the resulting transaction's status."""
        if step.kind == "decide_review":
            return self._decide_review(step)
        content = (step.kind, step.payer, step.payee, step.amount, step.original)
        if step.request in self.outcomes_by_request:
            first, response = self.outcomes_by_request[step.request]
            return response if first == content else Code.DUPLICATE_REQUEST
        if step.kind == chart.COMMISSION_PAYOUT:
            step = replace(step, amount=self._available(step.payer))
        result, is_stored = self._refund(step) if step.kind == "refund" else self._execute(step)
        if step.request is not None and is_stored:
            self.outcomes_by_request[step.request] = (content, result)
        return result

    def _available(self, name: str) -> int:
        overdraft = OVERDRAFT if name == "partner" else 0
        return self.balances[name] - self.held.get(name, 0) + overdraft

    def _execute(self, step: Step) -> tuple[Code | str, bool]:
        assert step.amount is not None
        card = step.payer if step.payer in CARDS else None
        payer, payee = CARDS.get(step.payer, step.payer), CARDS.get(step.payee, step.payee)
        if payer == payee:
            return Code.SELF_TRANSFER, False
        if step.kind == chart.AGENT_TRANSFER and payer != "agent":
            return Code.FORBIDDEN, False
        error_code = self._check_pin(step, payer, card)
        if error_code:
            return error_code, False
        if step.amount == 0:  # no commission to pay out
            return Code.INSUFFICIENT_FUNDS, False
        fee = self._calculate_fee(step)
        error_code = self._check_limits(step, payer, card)
        error_code = error_code or self._check_compliance(step, payer)
        sender_fee = fee if step.kind == "transfer_p2p" else 0
        if not error_code and payer != "cash" and self._available(payer) < step.amount + sender_fee:
            error_code = Code.INSUFFICIENT_FLOAT if payer == "agent" else Code.INSUFFICIENT_FUNDS
        if not error_code and payee in WALLETS:
            remaining = LIMITS[WALLETS[payee]]["max_balance"] - self.balances[payee]
            error_code = Code.MAX_BALANCE_EXCEEDED if step.amount > remaining else None
        status = "failed" if error_code else "completed"
        if not error_code and step.kind in MONITORED_TYPES and step.amount > REVIEW_ABOVE:
            status = "under_review"
        if not error_code and step.kind in COMMISSION_RATES and step.amount > REVIEW_CASH_ABOVE:
            status = "under_review"
        transaction = ModelTransaction(
            step.kind, payer, payee, card, step.amount, fee, status, self.now
        )
        self.transactions.append(transaction)
        if error_code:
            return error_code, True
        if card and step.pin is None:
            day = (card, self.now.date())
            self.spent_without_pin[day] = self.spent_without_pin.get(day, 0) + step.amount
            transaction.is_unpinned = True
        if status == "under_review":
            self.held[payer] = self.held.get(payer, 0) + step.amount + sender_fee
        else:
            self._post(transaction)
        return status, True

    def _post(self, transaction: ModelTransaction) -> None:
        self.balances[transaction.payer] -= transaction.amount
        self.balances[transaction.payee] += transaction.amount
        self.balances[
            transaction.payer if transaction.kind == "transfer_p2p" else transaction.payee
        ] -= transaction.fee
        self.balances["fees"] += transaction.fee
        transaction.posted_at = self.now
        if transaction.kind in COMMISSION_RATES:
            commission = self._calculate_commission(transaction)
            self.balances["commission"] += commission
            self.balances["expense"] -= commission

    def _calculate_commission(self, transaction: ModelTransaction) -> int:
        """Match the cash with the oldest unmatched opposite cash, and return the commission."""
        since = max(transaction.created_at - DAY, self.now - WEEK)
        earlier = [
            other
            for other in self.transactions
            if (other.payer, other.payee) == (transaction.payee, transaction.payer)
            and other.kind in COMMISSION_RATES
            and other.posted_at is not None
            and other.posted_at >= since
        ]
        commissionable = transaction.amount
        for _ in range(transaction.amount):
            matched = [other for other in earlier if other.unmatched_cash]
            if not matched:
                break
            min(matched, key=lambda other: other.posted_at or self.now).unmatched_cash -= 1
            commissionable -= 1
        returned = transaction.amount - commissionable
        transaction.unmatched_cash = (
            returned if transaction.kind == chart.AGENT_CASHIN else transaction.amount
        )
        if transaction.amount < MIN_COMMISSIONED_AMOUNT:
            return 0
        before = self.accrued_commission
        self.accrued_commission += commissionable * COMMISSION_RATES[transaction.kind]
        return (self.accrued_commission + 50_000) // 100_000 - (before + 50_000) // 100_000

    def _calculate_fee(self, step: Step) -> int:
        assert step.amount is not None
        if step.kind == "transfer_p2p":
            return (step.amount * 15 + 500) // 1000
        return (step.amount + 50) // 100 if step.kind.endswith("_payment") else 0

    def _check_pin(self, step: Step, payer: str, card: str | None) -> Code | None:
        if step.pin is None:
            if card is None:
                return None
            limit = LIMITS[WALLETS[payer]]["no_pin"]
            spent = self.spent_without_pin.get((card, self.now.date()), 0)
            exceeds_limit = step.amount > limit or spent + step.amount > 5 * limit
            return Code.PIN_REQUIRED if exceeds_limit else None
        holder = card if card == "k0" else payer
        if holder not in (*WALLETS, "k0", "agent"):
            return Code.INVALID_PIN
        until = self.locked.get(holder)
        if until is not None and self.now < until:
            return Code.ACCOUNT_LOCKED
        if until is not None:
            del self.locked[holder]
            self.pin_failures[holder] = 0
        if step.pin == (CHILD_PIN if holder == "k0" else PIN):
            self.pin_failures[holder] = 0
            return None
        self.pin_failures[holder] = self.pin_failures.get(holder, 0) + 1
        self.wrong_pins.append((payer, self.now))
        if self.pin_failures[holder] == 3:
            self.locked[holder] = self.now + HALF_HOUR
        return Code.INVALID_PIN

    def _sum_sent(self, payer: str, card: str | None = None) -> tuple[int, int]:
        """Return the amounts sent today and this month, net of refunds."""
        sent = [
            transaction
            for transaction in self.transactions
            if transaction.payer == payer
            and transaction.kind in LIMITED_TYPES
            and transaction.status != "failed"
            and (card is None or transaction.card == card)
        ]
        today = sum(
            transaction.amount - transaction.refunded
            for transaction in sent
            if transaction.created_at.date() == self.now.date()
        )
        month = sum(
            transaction.amount - transaction.refunded
            for transaction in sent
            if (transaction.created_at.year, transaction.created_at.month)
            == (self.now.year, self.now.month)
        )
        return today, month

    def _check_limits(self, step: Step, payer: str, card: str | None) -> Code | None:
        if payer not in WALLETS or step.kind not in LIMITED_TYPES:
            return None
        assert step.amount is not None
        limits = LIMITS[WALLETS[payer]]
        if step.amount > limits["transaction"]:
            return Code.TRANSACTION_LIMIT_EXCEEDED
        if card == "k0" and self._sum_sent(payer, card)[0] + step.amount > CHILD_LIMIT:
            return Code.CARD_LIMIT_EXCEEDED
        today, month = self._sum_sent(payer)
        if today + step.amount > limits["day"]:
            return Code.DAILY_LIMIT_EXCEEDED
        return Code.MONTHLY_LIMIT_EXCEEDED if month + step.amount > limits["month"] else None

    def _check_compliance(self, step: Step, payer: str) -> Code | None:
        if step.kind in COMMISSION_RATES:
            too_many = self.count_recent_cash() + 1 > MAX_CASH_OPERATIONS_PER_DAY
            return Code.COMPLIANCE_REJECTED if too_many else None
        if payer not in WALLETS or step.kind not in MONITORED_TYPES:
            return None
        recent = [
            transaction
            for transaction in self.transactions
            if transaction.payer == payer
            and transaction.kind in MONITORED_TYPES
            and transaction.status != "failed"
            and (self.now - transaction.created_at).total_seconds() <= 86_400
        ]
        too_many = len(recent) + 1 > MAX_PAYMENTS_PER_DAY
        too_many |= self.count_recent_wrong_pins(payer) > MAX_WRONG_PINS_PER_DAY
        return Code.COMPLIANCE_REJECTED if too_many else None

    def count_recent_cash(self) -> int:
        return sum(
            transaction.kind in COMMISSION_RATES
            and transaction.status != "failed"
            and self.now - transaction.created_at <= DAY
            for transaction in self.transactions
        )

    def count_recent_wrong_pins(self, payer: str) -> int:
        day_ago = self.now - timedelta(days=1)
        return sum(
            holder == payer and failed_at >= day_ago for holder, failed_at in self.wrong_pins
        )

    def _refund(self, step: Step) -> tuple[Code | str, bool]:
        original = self.transactions[step.original] if step.original is not None else None
        if original is None or "merchant" not in (original.payer, original.payee):
            return Code.TRANSACTION_NOT_FOUND, False
        if original.status == "refunded":
            return Code.ALREADY_REFUNDED, False
        if original.payer == "merchant" or original.status in ("failed", "under_review"):
            return Code.NOT_REFUNDABLE, False
        remaining = original.amount - original.refunded
        amount = remaining if step.amount is None else step.amount
        if amount > remaining:
            return Code.REFUND_EXCEEDS_REMAINING, False
        refunded_fee = original.fee if amount == remaining else 0
        refund = ModelTransaction(
            "refund", "merchant", original.payer, None, amount, 0, "failed", self.now
        )
        self.transactions.append(refund)
        if self._available("merchant") < amount - refunded_fee:
            return Code.INSUFFICIENT_FUNDS, True
        refund.status = "completed"
        original.refunded += amount
        original.status = "refunded" if amount == remaining else "partially_refunded"
        self.balances["merchant"] += refunded_fee - amount
        self.balances["fees"] -= refunded_fee
        self.balances[original.payer] += amount
        return "completed", True

    def _decide_review(self, step: Step) -> Code | str:
        row = self.transactions[step.original] if step.original is not None else None
        if row is None:
            return Code.TRANSACTION_NOT_FOUND
        if row.status != "under_review":
            return Code.ALREADY_RESOLVED
        self.held[row.payer] -= row.amount + (row.fee if row.kind == "transfer_p2p" else 0)
        row.status = "failed"
        exceeds_max_balance = (
            row.payee in WALLETS
            and self.balances[row.payee] + row.amount > LIMITS[WALLETS[row.payee]]["max_balance"]
        )
        if step.release and not exceeds_max_balance:
            row.status = "completed"
            self._post(row)
        elif row.card and row.is_unpinned:
            self.spent_without_pin[row.card, row.created_at.date()] -= row.amount
        return row.status
