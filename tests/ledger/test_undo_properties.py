"""Random payments, refunds, reversals, recalls and disputes agree with a simple model.

Fees and commissions on the way out are taken from the ledger's results, because other tests cover
them. The expected amounts, receivers and rejections are calculated here.
"""

from dataclasses import dataclass
from typing import Any

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
from builders.undo_model import WALLETS, Model, Movement
from tapgate.auth.actors import SYSTEM_ACTOR
from tapgate.business.disputes import operations as disputes
from tapgate.core.vault import Vault
from tapgate.ledger import chart
from tapgate.ledger.commands import (
    DisputeRefund,
    LedgerCommand,
    RecallDecision,
    RecallRequest,
    Reversal,
    TransactionResult,
)
from tapgate.runtime.store.transaction import Transaction, open_transaction
from tapgate_client import ids, money
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.disputes import DisputeReason, NewDispute

pytestmark = [pytest.mark.refund, pytest.mark.commission, pytest.mark.cash_in]

_VAULT = Vault("v" * 32)
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


_some_amounts = st.one_of(st.none(), _amounts)
_recall_ends = st.sampled_from(["returned", "kept", "expired", "decided"])
_dispute_ends = st.sampled_from(["refunded", "refunded", "answered", "rejected", "withdrawn"])
_pay = st.builds(Step, kind=st.just("pay"), payer=_wallets, amount=_amounts)
_p2p = st.builds(Step, kind=st.just("p2p"), payer=_wallets, payee=_wallets, amount=_amounts)
_reverse = st.builds(Step, kind=st.just("reverse"), index=_indexes, amount=_some_amounts)
_dispute = st.builds(Step, kind=st.just("dispute"), index=_indexes, amount=_some_amounts)
_end_dispute = st.builds(Step, kind=st.just("end dispute"), index=_indexes, status=_dispute_ends)
_end_recall = st.builds(Step, kind=st.just("end"), index=_indexes, status=_recall_ends)
_steps = st.one_of(
    *(_pay, _pay, _p2p, _p2p, _reverse, _reverse),
    *(_dispute, _dispute, _end_dispute, _end_dispute, _end_recall, _end_recall),
    st.builds(Step, kind=st.just("cash_in"), payee=_wallets, amount=_amounts),
    st.builds(Step, kind=st.just("cash_out"), payer=_wallets, amount=_amounts),
    st.builds(Step, kind=st.just("refund"), index=_indexes, amount=_some_amounts),
    st.builds(Step, kind=st.just("recall"), index=_indexes),
    st.builds(Step, kind=st.just("wait"), hours=st.sampled_from([1, 7, 20])),
)
_sequences = st.lists(_steps, min_size=60, max_size=70)


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
        ledger.before_commit = finish_dispute
        return cls(ledger, owners, number)

    async def run(self, step: Step) -> None:
        if step.kind == "wait":
            self.ledger.clock.advance(hours=step.hours)
            self.model.now = self.ledger.clock()
        elif step.kind in ("p2p", "cash_in", "cash_out", "pay"):
            await self._pay(step)
        elif (row := self.model.choose(step.kind, step.index)) is not None:
            undo = self._change_dispute if "dispute" in step.kind else self._undo
            await undo(step, row)

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

    async def _change_dispute(self, step: Step, row: Movement) -> None:
        change = self._open_dispute if step.kind == "dispute" else self._end_dispute
        try:
            code = await change(step, row)
        except ApiError as error:
            code = error.code
        expected = (
            self.model.open_dispute(row, step.amount)
            if step.kind == "dispute"
            else self.model.end_dispute(row, step.status)
        )
        assert code == expected, (step, row)

    async def _open_dispute(self, step: Step, row: Movement) -> Code | None:
        body = NewDispute(
            transaction_id=ids.encode(ids.TRANSACTION, row.id),
            reason=DisputeReason.DUPLICATE,
            amount=None if step.amount is None else money.format_decimal(step.amount, "SLE"),
        )
        key = build_request_key(f"dispute {self.number} {row.id} {row.dispute} {self.model.now}")
        async with self._open_transaction() as tx:
            await disputes.open_dispute(tx, SYSTEM_ACTOR, body, row.id, key)
        return None

    async def _end_dispute(self, step: Step, row: Movement) -> Code | None:
        """Do what the endpoints do: a refund ends the dispute unless nothing remains."""
        database = self.ledger.database
        dispute_id = await database.fetchval(
            "SELECT id FROM disputes WHERE transaction_id = $1", row.id
        )
        async with self._open_transaction() as tx:
            if step.status == "answered":
                await disputes.respond(tx, SYSTEM_ACTOR, dispute_id or 5, "No", processor_id=None)
            elif step.status == "rejected":
                await disputes.reject(tx, SYSTEM_ACTOR, dispute_id or 5, "Delivered")
            elif step.status == "withdrawn":
                await disputes.withdraw(tx, SYSTEM_ACTOR, dispute_id or 5)
        if step.status != "refunded":
            return None
        end = DisputeRefund(id=dispute_id or 5, decision_reason="Not delivered")
        amount = min(row.disputed, row.amount - row.given_back)
        if dispute_id is None or not amount:
            async with self._open_transaction() as tx:
                await disputes.end_without_refund(tx, SYSTEM_ACTOR, end)
            return None
        command = build_refund(
            self.owners["merchant"],
            row.id,
            amount,
            dispute=end,
            audit=SYSTEM_ACTOR.build_audit_facts("Not delivered"),
        )
        return (await self.ledger.submit(command)).code

    def _open_transaction(self) -> Any:
        ledger = self.ledger
        return open_transaction(ledger.database, ledger.clock, ledger.new_id, _VAULT)

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
            if row.recall == "open":
                await self._undo(Step("end", status="kept"), row)
            await self._undo(Step("refund" if row.kind == "pay" else "reverse", amount=None), row)

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
        stored = await self.ledger.database.fetch("SELECT transaction_id, status FROM disputes")
        disputed = [(row.id, row.dispute) for row in self.model.movements if row.dispute]
        assert sorted(map(tuple, stored)) == sorted(disputed)
        commission = await self.ledger.get_balance(self.owners["agent"], chart.COMMISSION)
        assert commission == self.model.balances["commission"]


async def finish_dispute(tx: Transaction, command: LedgerCommand, _: TransactionResult) -> None:
    """End the dispute in the ledger's transaction, as the gateway's hook does."""
    await disputes.finish_refund(tx, command.audit, command.dispute, vault=_VAULT)


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
