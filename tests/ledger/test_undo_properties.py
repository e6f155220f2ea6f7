"""Random payments, refunds, reversals and recalls agree with a simple model.

Fees and commissions on the way out are taken from the ledger's results, because other tests cover
them. What goes back, to whom and whether it may, is calculated here.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any, Final

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from builders.ledger import (
    PIN,
    LedgerDriver,
    build_cash_in,
    build_cash_out,
    build_p2p,
    build_payment,
    build_refund,
    build_request_key,
    remove_limits,
)
from tapgate.ledger import chart
from tapgate.ledger.commands import RecallDecision, RecallRequest, Reversal
from tapgate_client.errors import Code

pytestmark = [pytest.mark.refund, pytest.mark.commission, pytest.mark.cash_in]

DAY: Final = timedelta(days=1)
WALLETS: Final = ("w0", "w1", "w2")
_amounts = st.sampled_from([1, 3, 50_00, 99_99, 100_01, 333_33, 700_00])
_wallets = st.sampled_from(WALLETS)
_indexes = st.integers(0, 25)


@dataclass
class Step:
    kind: str
    payer: str = ""
    payee: str = ""
    amount: int | None = 0
    index: int = 0
    status: str = ""
    hours: int = 0


_steps = st.one_of(
    st.builds(Step, kind=st.just("p2p"), payer=_wallets, payee=_wallets, amount=_amounts),
    st.builds(Step, kind=st.just("p2p"), payer=_wallets, payee=_wallets, amount=_amounts),
    st.builds(Step, kind=st.just("cash_in"), payee=_wallets, amount=_amounts),
    st.builds(Step, kind=st.just("cash_out"), payer=_wallets, amount=_amounts),
    st.builds(Step, kind=st.just("pay"), payer=_wallets, amount=_amounts),
    st.builds(Step, kind=st.just("refund"), index=_indexes, amount=st.one_of(st.none(), _amounts)),
    st.builds(Step, kind=st.just("reverse"), index=_indexes, amount=st.one_of(st.none(), _amounts)),
    st.builds(Step, kind=st.just("reverse"), index=_indexes, amount=st.one_of(st.none(), _amounts)),
    st.builds(Step, kind=st.just("recall"), index=_indexes),
    st.builds(
        Step,
        kind=st.just("end"),
        index=_indexes,
        status=st.sampled_from(["returned", "kept", "expired", "decided"]),
    ),
    st.builds(Step, kind=st.just("wait"), hours=st.sampled_from([1, 7, 20])),
)
_sequences = st.lists(_steps, min_size=35, max_size=45)


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

    def sum_sent(self, payer: str) -> tuple[int, int]:
        """Return what counts toward the daily and the monthly limit: what did not come back."""
        sent = [row for row in self.movements if row.payer == payer]
        today = [row for row in sent if row.at.date() == self.now.date()]
        month = [row for row in sent if row.at.month == self.now.month]
        return (
            sum(row.amount - row.given_back for row in today),
            sum(row.amount - row.given_back for row in month),
        )


class Driver:
    """The ledger and its model, which get the same steps."""

    def __init__(self, ledger: LedgerDriver, owners: dict[str, int], number: int) -> None:
        self.ledger, self.owners, self.number = ledger, owners, number
        balances = {
            **dict.fromkeys(WALLETS, 1_000_00),
            "agent": 3_000_00,
            "merchant": 10_00,
            **dict.fromkeys(("commission", "expense", "fees"), 0),
        }
        self.model = Model(ledger.clock(), balances)

    @classmethod
    async def create(cls, ledger: LedgerDriver, number: int) -> "Driver":
        owners = {name: await ledger.create_subscriber(1_000_00) for name in WALLETS}
        owners["agent"] = await ledger.create_agent(3_000_00)
        owners["merchant"] = await ledger.create_processor(10_00)
        return cls(ledger, owners, number)

    async def run(self, step: Step) -> None:
        if step.kind == "wait":
            self.ledger.clock.advance(hours=step.hours)
            self.model.now = self.ledger.clock()
        elif step.kind in ("p2p", "cash_in", "cash_out", "pay"):
            await self._pay(step)
        elif step.index < len(self.model.movements):
            await self._undo(step, self.model.movements[step.index])

    async def _pay(self, step: Step) -> None:
        assert step.amount is not None
        agent, merchant = self.owners["agent"], self.owners["merchant"]
        payer = "agent" if step.kind == "cash_in" else step.payer
        payee = {"cash_out": "agent", "pay": "merchant"}.get(step.kind, step.payee)
        if payer == payee:
            return
        command = {
            "p2p": lambda: build_p2p(self.owners[payer], self.owners[payee], step.amount or 0),
            "cash_in": lambda: build_cash_in(agent, self.owners[payee], step.amount or 0),
            "cash_out": lambda: build_cash_out(agent, self.owners[payer], step.amount or 0),
            "pay": lambda: build_payment(
                self.owners[payer], merchant, step.amount or 0, payer_pin=PIN
            ),
        }[step.kind]()
        outcome = await self.ledger.submit(command)
        result = outcome.result
        if outcome.code is not None or result is None:
            assert outcome.code in (Code.INSUFFICIENT_FUNDS, Code.INSUFFICIENT_FLOAT), outcome
            assert self.model.get_available(payer) < step.amount * 2
            return
        self.model.move(payer, payee, step.amount)
        self.model.move("merchant" if step.kind == "pay" else payer, "fees", result.fee)
        self.model.move("expense", "commission", result.commission)
        self.model.movements.append(
            Movement(
                result.transaction_id, step.kind, payer, payee, step.amount, result.fee,
                result.commission, self.model.now,
            )
        )  # fmt: skip

    async def _undo(self, step: Step, row: Movement) -> None:
        command: Any
        if step.kind == "reverse":
            command = Reversal(original_id=row.id, amount=step.amount, channel="admin")
            expected = self.model.reverse(row, step.amount)
        elif step.kind == "refund":
            command = build_refund(self.owners["merchant"], row.id, step.amount)
            expected = self.model.refund(row, step.amount)
        elif step.kind == "recall":
            command = RecallRequest(
                transaction_id=row.id,
                max_age_seconds=86_400,
                hold_seconds=86_400,
                idempotency_key=build_request_key(f"{self.number} {row.id} {self.model.now}"),
            )
            is_repeated = row.recall is not None
            expected = Code.NOT_RECALLABLE if is_repeated else self.model.recall(row)
            if is_repeated:
                command = None  # the same key at the same time would be a replay
        else:
            recall_id = await self.ledger.database.fetchval(
                "SELECT id FROM recalls WHERE transaction_id = $1", row.id
            )
            command = RecallDecision(
                recall_id=recall_id or 5,
                transaction_id=row.id,
                status=step.status,
                is_return=step.status == "returned",
                channel="api",
            )
            expected = self.model.end(row, step.status)
        if command is not None:
            assert (await self.ledger.submit(command)).code == expected, (step, row)

    async def reverse_everything(self) -> None:
        """End all recalls, and reverse or refund what is left, newest first."""
        for name in WALLETS:
            await self.ledger.deposit(await self.ledger.get_account_id(self.owners[name]), 9_000_00)
            self.model.balances[name] += 9_000_00
        for name, kind in (("agent", chart.FLOAT), ("commission", chart.COMMISSION)):
            account = await self.ledger.get_account_id(self.owners["agent"], kind)
            await self.ledger.deposit(account, 9_000_00)
            self.model.balances[name] += 9_000_00
        for row in reversed(self.model.movements):
            index = self.model.movements.index(row)
            if row.recall == "open":
                await self.run(Step("end", index=index, status="kept"))
            await self.run(Step("refund" if row.kind == "pay" else "reverse", "", "", None, index))

    async def check(self) -> None:
        for name in (*WALLETS, "agent", "merchant"):
            account_id = await self.ledger.get_account_id(self.owners[name])
            row = await self.ledger.database.fetchrow(
                "SELECT balance, held, usage_day, day_used, month_used FROM accounts WHERE id = $1",
                account_id,
            )
            assert row["balance"] == self.model.balances[name], name
            assert row["held"] == self.model.held.get(name, 0), name
            if name in WALLETS and row["usage_day"] == self.model.now.date():
                assert (row["day_used"], row["month_used"]) == self.model.sum_sent(name), name
        commission = await self.ledger.get_balance(self.owners["agent"], chart.COMMISSION)
        assert commission == self.model.balances["commission"]


def draw_sequence(number: int) -> list[Step]:
    examples: list[list[Step]] = []

    @settings(max_examples=2, database=None, phases=[Phase.generate])
    @seed(number)
    @given(_sequences)
    def collect(sequence: list[Step]) -> None:
        examples.append(sequence)

    collect()
    return examples[-1]


@pytest.mark.parametrize("number", range(8))
async def test_random_sequences_agree_with_the_model(ledger: LedgerDriver, number: int) -> None:
    await remove_limits(ledger)
    await ledger.database.execute("UPDATE compliance_rules SET status = 'inactive'")
    ledger.ledger.invalidate_rules()
    driver = await Driver.create(ledger, number)
    for step in draw_sequence(number):
        await driver.run(step)
    await driver.check()

    await driver.reverse_everything()

    await driver.check()
    for row in driver.model.movements:
        assert row.given_back == row.amount, row
        if row.recall != "returned":
            assert (row.fee_back, row.commission_back) == (row.fee, row.commission), row
    kept = sum(row.fee - row.fee_back for row in driver.model.movements)
    assert await ledger.get_platform_balance(chart.FEES) == kept == driver.model.balances["fees"]
    assert await ledger.get_platform_balance(chart.COMMISSION_EXPENSE) == 0
    for name in WALLETS:
        assert driver.model.sum_sent(name) == (0, 0)
