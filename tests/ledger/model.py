"""What the ledger should do, said once more in the plainest way: one economy in dictionaries, one
command after the other, no batches, no database. The ledger is tested against it."""

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from tapgate.errors import Code
from tapgate.ledger import chart

PIN = "1234"
CHILD_PIN = "4321"

# Small figures, so that random amounts meet every limit. Minor units.
LIMITS = {
    1: {"max_balance": 2_000, "transaction": 700, "day": 1_500, "month": 2_000, "no_pin": 50},
    2: {"max_balance": 4_000, "transaction": 900, "day": 2_500, "month": 3_000, "no_pin": 80},
}
REVIEW_ABOVE = 600
BLOCK_ABOVE_IN_A_DAY = 9
WRONG_PINS_IN_A_DAY = 4  # own and child card's; more of them block
CHILD_LIMIT = 300
REVIEW_CASH_ABOVE = 280  # a cash-in for its payee, a cash-out for its agent
BLOCK_CASH_ABOVE_IN_A_DAY = 8  # of one agent
COMMISSIONS = {chart.AGENT_CASHIN: 1_000, chart.AGENT_CASHOUT: 700}  # thousandths of a percent
COMMISSION_FROM = 50
DAY, WEEK = timedelta(days=1), timedelta(days=7)
OVERDRAFT = 200
HALF_HOUR = timedelta(minutes=30)
WALLETS = {"w0": 1, "w1": 1, "w2": 2}
CARDS = {"c0": "w0", "k0": "w0", "c1": "w1"}  # k0 is a child card
WATCHED = ("transfer_p2p", "transfer", "pos_payment", "online_payment")
COUNTED = (*WATCHED, "agent_cashout")


@dataclass
class Step:
    """One thing that is asked for. `amount` None is all of it."""

    kind: str
    payer: str = ""
    payee: str = ""
    amount: int | None = 0
    pin: str | None = None
    request: str | None = None
    original: int | None = None  # which of the transactions so far
    release: bool = True
    hours: int = 0


@dataclass
class Made:
    """A transaction of the model."""

    kind: str
    payer: str
    payee: str
    card: str | None
    amount: int
    fee: int
    status: str
    made_at: datetime
    refunded: int = 0
    moved_at: datetime | None = None
    unmatched: int = (
        0  # of a cash movement: what a later one in the other direction is matched with
    )


@dataclass
class Model:
    now: datetime
    balances: dict[str, int]
    held: dict[str, int] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)
    locked: dict[str, datetime] = field(default_factory=dict)
    wrong_pins: list[tuple[str, datetime]] = field(default_factory=list)
    unpinned: dict[tuple[str, date], int] = field(default_factory=dict)
    made: list[Made] = field(default_factory=list)
    answers: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    earned: int = 0  # by the agent, in thousandths of a percent of a minor unit

    def run(self, step: Step) -> Code | str | None:
        """The code of an objection, or the status of what happened."""
        if step.kind == "settle":
            return self._settle(step)
        asked = (step.kind, step.payer, step.payee, step.amount, step.original)
        if step.request in self.answers:
            first, answer = self.answers[step.request]
            return answer if first == asked else Code.DUPLICATE_REQUEST
        result, recorded = self._refund(step) if step.kind == "refund" else self._move(step)
        if step.request is not None and recorded:
            self.answers[step.request] = (asked, result)
        return result

    def _available(self, name: str) -> int:
        overdraft = OVERDRAFT if name == "partner" else 0
        return self.balances[name] - self.held.get(name, 0) + overdraft

    def _move(self, step: Step) -> tuple[Code | str, bool]:
        assert step.amount is not None
        card = step.payer if step.payer in CARDS else None
        payer, payee = CARDS.get(step.payer, step.payer), CARDS.get(step.payee, step.payee)
        if payer == payee:
            return Code.SELF_TRANSFER, False
        objection = self._pin(step, payer, card)
        if objection:
            return objection, False
        fee = self._fee(step)
        objection = self._limits(step, payer, card)
        objection = objection or self._screened(step, payer)
        sender_fee = fee if step.kind == "transfer_p2p" else 0
        if not objection and payer != "cash" and self._available(payer) < step.amount + sender_fee:
            objection = Code.INSUFFICIENT_FLOAT if payer == "agent" else Code.INSUFFICIENT_FUNDS
        if not objection and payee in WALLETS:
            room = LIMITS[WALLETS[payee]]["max_balance"] - self.balances[payee]
            objection = Code.MAX_BALANCE_EXCEEDED if step.amount > room else None
        status = "failed" if objection else "completed"
        if not objection and step.kind in WATCHED and step.amount > REVIEW_ABOVE:
            status = "under_review"
        if not objection and step.kind in COMMISSIONS and step.amount > REVIEW_CASH_ABOVE:
            status = "under_review"
        made = Made(step.kind, payer, payee, card, step.amount, fee, status, self.now)
        self.made.append(made)
        if objection:
            return objection, True
        if card and step.pin is None:
            day = (card, self.now.date())
            self.unpinned[day] = self.unpinned.get(day, 0) + step.amount
        if status == "under_review":
            self.held[payer] = self.held.get(payer, 0) + step.amount + sender_fee
        else:
            self._post(made)
        return status, True

    def _post(self, made: Made) -> None:
        self.balances[made.payer] -= made.amount
        self.balances[made.payee] += made.amount
        self.balances[made.payer if made.kind == "transfer_p2p" else made.payee] -= made.fee
        self.balances["fees"] += made.fee
        made.moved_at = self.now
        if made.kind in COMMISSIONS:
            commission = self._commission(made)
            self.balances["commission"] += commission
            self.balances["expense"] -= commission

    def _commission(self, made: Made) -> int:
        """Every unit of cash is matched with the oldest one that went the other way."""
        since = max(made.made_at - DAY, self.now - WEEK)
        earlier = [
            other
            for other in self.made
            if (other.payer, other.payee) == (made.payee, made.payer)
            and other.kind in COMMISSIONS
            and other.moved_at is not None
            and other.moved_at >= since
        ]
        earning = made.amount
        for _ in range(made.amount):
            matched = [other for other in earlier if other.unmatched]
            if not matched:
                break
            min(matched, key=lambda other: other.moved_at or self.now).unmatched -= 1
            earning -= 1
        returned = made.amount - earning
        made.unmatched = returned if made.kind == chart.AGENT_CASHIN else made.amount
        if made.amount < COMMISSION_FROM:
            return 0
        before = self.earned
        self.earned += earning * COMMISSIONS[made.kind]
        return (self.earned + 50_000) // 100_000 - (before + 50_000) // 100_000

    def _fee(self, step: Step) -> int:
        assert step.amount is not None
        if step.kind == "transfer_p2p":
            return (step.amount * 15 + 500) // 1000
        return (step.amount + 50) // 100 if step.kind.endswith("_payment") else 0

    def _pin(self, step: Step, payer: str, card: str | None) -> Code | None:
        if step.pin is None:
            if card is None:
                return None
            limit = LIMITS[WALLETS[payer]]["no_pin"]
            spent = self.unpinned.get((card, self.now.date()), 0)
            over = step.amount > limit or spent + step.amount > 5 * limit
            return Code.PIN_REQUIRED if over else None
        holder = card if card == "k0" else payer
        if holder not in (*WALLETS, "k0", "agent"):
            return Code.INVALID_PIN
        until = self.locked.get(holder)
        if until is not None and self.now < until:
            return Code.ACCOUNT_LOCKED
        if until is not None:
            del self.locked[holder]
            self.tries[holder] = 0
        if step.pin == (CHILD_PIN if holder == "k0" else PIN):
            self.tries[holder] = 0
            return None
        self.tries[holder] = self.tries.get(holder, 0) + 1
        self.wrong_pins.append((payer, self.now))
        if self.tries[holder] == 3:
            self.locked[holder] = self.now + HALF_HOUR
        return Code.INVALID_PIN

    def _sent(self, payer: str, card: str | None = None) -> tuple[int, int]:
        """What was sent today and this month, less what was given back."""
        sent = [
            made
            for made in self.made
            if made.payer == payer
            and made.kind in COUNTED
            and made.status != "failed"
            and (card is None or made.card == card)
        ]
        today = sum(m.amount - m.refunded for m in sent if m.made_at.date() == self.now.date())
        month = sum(
            m.amount - m.refunded
            for m in sent
            if (m.made_at.year, m.made_at.month) == (self.now.year, self.now.month)
        )
        return today, month

    def _limits(self, step: Step, payer: str, card: str | None) -> Code | None:
        if payer not in WALLETS or step.kind not in COUNTED:
            return None
        assert step.amount is not None
        limits = LIMITS[WALLETS[payer]]
        if step.amount > limits["transaction"]:
            return Code.TRANSACTION_LIMIT_EXCEEDED
        if card == "k0" and self._sent(payer, card)[0] + step.amount > CHILD_LIMIT:
            return Code.CARD_LIMIT_EXCEEDED
        today, month = self._sent(payer)
        if today + step.amount > limits["day"]:
            return Code.DAILY_LIMIT_EXCEEDED
        return Code.MONTHLY_LIMIT_EXCEEDED if month + step.amount > limits["month"] else None

    def _screened(self, step: Step, payer: str) -> Code | None:
        if step.kind in COMMISSIONS:
            too_many = self.recent_cash() + 1 > BLOCK_CASH_ABOVE_IN_A_DAY
            return Code.COMPLIANCE_REJECTED if too_many else None
        if payer not in WALLETS or step.kind not in WATCHED:
            return None
        recent = [
            made
            for made in self.made
            if made.payer == payer
            and made.kind in WATCHED
            and made.status != "failed"
            and (self.now - made.made_at).total_seconds() <= 86_400
        ]
        too_many = len(recent) + 1 > BLOCK_ABOVE_IN_A_DAY
        too_many |= self.recent_wrong_pins(payer) > WRONG_PINS_IN_A_DAY
        return Code.COMPLIANCE_REJECTED if too_many else None

    def recent_cash(self) -> int:
        return sum(
            made.kind in COMMISSIONS and made.status != "failed" and self.now - made.made_at <= DAY
            for made in self.made
        )

    def recent_wrong_pins(self, payer: str) -> int:
        day_ago = self.now - timedelta(days=1)
        return sum(who == payer and when >= day_ago for who, when in self.wrong_pins)

    def _refund(self, step: Step) -> tuple[Code | str, bool]:
        original = self.made[step.original] if step.original is not None else None
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
        fee_back = original.fee if amount == remaining else 0
        refund = Made("refund", "merchant", original.payer, None, amount, 0, "failed", self.now)
        self.made.append(refund)
        if self._available("merchant") < amount - fee_back:
            return Code.INSUFFICIENT_FUNDS, True
        refund.status = "completed"
        original.refunded += amount
        original.status = "refunded" if amount == remaining else "partially_refunded"
        self.balances["merchant"] += fee_back - amount
        self.balances["fees"] -= fee_back
        self.balances[original.payer] += amount
        return "completed", True

    def _settle(self, step: Step) -> Code | str:
        row = self.made[step.original] if step.original is not None else None
        if row is None:
            return Code.TRANSACTION_NOT_FOUND
        if row.status != "under_review":
            return Code.ALREADY_RESOLVED
        self.held[row.payer] -= row.amount + (row.fee if row.kind == "transfer_p2p" else 0)
        row.status = "failed"
        full = (
            row.payee in WALLETS
            and self.balances[row.payee] + row.amount > LIMITS[WALLETS[row.payee]]["max_balance"]
        )
        if step.release and not full:
            row.status = "completed"
            self._post(row)
        return row.status
