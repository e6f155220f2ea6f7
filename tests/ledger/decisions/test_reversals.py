"""Reversals: amounts, fees, commission and limits go back, and nothing else moves."""

import asyncio

import pytest

from builders.ledger import (
    PIN,
    LedgerDriver,
    build_cash_in,
    build_cash_out,
    build_command,
    build_fund,
    build_p2p,
    build_payment,
    build_request_key,
    remove_limits,
    require_balanced_books,
)
from builders.reversals import get_row, get_usage, reverse, submit
from tapgate.ledger import chart, commands
from tapgate_client.errors import Code
from tapgate_client.schemas.transactions import TransactionType


def test_every_transaction_type_says_how_it_is_undone() -> None:
    assert {*chart.UNDO_BY_TYPE} == {*TransactionType}
    assert {kind.value for kind in chart.REVERSIBLE_TYPES} == {
        "transfer_p2p", "transfer", "agent_cashin", "agent_cashout", "agent_fund",
        "agent_transfer", "partner_fund", "partner_deposit", "processor_transfer",
        "commission_payout", "batch_credit",
    }  # fmt: skip


async def test_a_reversal_returns_amount_and_fee_and_restores_the_limits(
    ledger: LedgerDriver,
) -> None:
    sender, receiver = await ledger.create_subscriber(1_000_00), await ledger.create_subscriber()
    transfer = await submit(ledger, build_p2p(sender, receiver, 200_00))
    assert await ledger.get_platform_balance(chart.FEES) > 0
    assert await get_usage(ledger, sender) == (200_00, 200_00)

    outcome = await reverse(ledger, transfer)

    assert outcome.result is not None
    assert (outcome.result.amount, outcome.result.refundable_amount) == (200_00, 0)
    assert await ledger.get_balance(sender) == 1_000_00
    assert await ledger.get_balance(receiver) == 0
    assert await ledger.get_platform_balance(chart.FEES) == 0
    assert await get_usage(ledger, sender) == (0, 0)
    assert await get_usage(ledger, receiver) == (0, 0)
    row = await get_row(ledger, transfer)
    assert (row["status"], row["refunded_amount"]) == ("reversed", 200_00)
    reversal = await get_row(ledger, outcome.result.transaction_id)
    assert (reversal["type"], reversal["status"], reversal["original_id"]) == (
        "reversal", "completed", transfer,
    )  # fmt: skip


async def test_the_last_part_takes_the_rest_of_the_fee(ledger: LedgerDriver) -> None:
    """Fee shares are rounded down on the cumulated amount: 1 of 5, then 3 of 5, then all."""
    await ledger.database.execute(
        "UPDATE fee_rules SET rate = 5000 WHERE type = 'transfer_p2p'"  # 5%
    )
    await ledger.database.execute(
        "DELETE FROM fee_rules WHERE type = 'transfer_p2p' AND up_to IS NOT NULL"
    )
    ledger.ledger.invalidate_rules()
    sender, receiver = await ledger.create_subscriber(1_000), await ledger.create_subscriber()
    transfer = await submit(ledger, build_p2p(sender, receiver, 100))
    fees = []
    for amount in (33, 33, None):
        outcome = await reverse(ledger, transfer, amount)
        assert outcome.result is not None
        fees.append(outcome.result.fee_refunded)
        await require_balanced_books(ledger.database)
    assert fees == [1, 2, 2]
    assert await ledger.get_balance(sender) == 1_000
    assert (await get_row(ledger, transfer))["status"] == "reversed"


async def test_a_fee_paid_by_the_receiver_goes_back_to_the_receiver(ledger: LedgerDriver) -> None:
    await ledger.database.execute(
        """INSERT INTO fee_rules (type, up_to, rate, payer)
           VALUES ('partner_fund', NULL, 10000, 'receiver')"""
    )
    ledger.ledger.invalidate_rules()
    partner, subscriber = await ledger.create_partner(1_000), await ledger.create_subscriber()
    top_up = await submit(ledger, build_command(chart.PARTNER_FUND, partner, subscriber, 100))
    assert await ledger.get_balance(subscriber) == 90
    assert (await reverse(ledger, top_up)).code is None  # 90 and the returned fee cover 100
    assert await ledger.get_balance(subscriber) == 0
    assert await ledger.get_balance(partner) == 1_000


@pytest.mark.parametrize("parts", [(None,), (333_33, None), (1, 2, None)])
async def test_three_cash_ins_and_three_reversals_leave_no_commission(
    ledger: LedgerDriver, parts: tuple[int | None, ...]
) -> None:
    await remove_limits(ledger)
    agent, subscriber = await ledger.create_agent(10_000_00), await ledger.create_subscriber()
    cash_ins = [
        await submit(ledger, build_cash_in(agent, subscriber, amount))
        for amount in (1_000_01, 777_77, 350_49)
    ]
    assert await ledger.get_balance(agent, chart.COMMISSION) > 0
    for cash_in in cash_ins:
        for amount in parts:
            assert (await reverse(ledger, cash_in, amount)).code is None
    assert await ledger.get_balance(agent, chart.COMMISSION) == 0
    assert await ledger.get_platform_balance(chart.COMMISSION_EXPENSE) == 0
    assert await ledger.get_balance(agent) == 10_000_00
    assert await ledger.get_balance(subscriber) == 0


async def test_an_undone_cash_out_no_longer_reduces_commission(ledger: LedgerDriver) -> None:
    await remove_limits(ledger)
    agent, subscriber = await ledger.create_agent(900_00), await ledger.create_subscriber(1_000_00)
    cash_out = await submit(ledger, build_cash_out(agent, subscriber, 400_00))
    await reverse(ledger, cash_out)
    await submit(ledger, build_cash_in(agent, subscriber, 800_00))
    assert await ledger.get_balance(agent, chart.COMMISSION) == 8_00  # on the whole amount


@pytest.mark.parametrize("is_family", [False, True])
async def test_an_undone_cash_in_gives_its_match_back(
    ledger: LedgerDriver, is_family: bool
) -> None:
    """Otherwise, an agent would earn on money that was only cashed out before."""
    await remove_limits(ledger)
    agent, subscriber = await ledger.create_agent(900_00), await ledger.create_subscriber(1_000_00)
    payer = await ledger.create_agent(parent=agent) if is_family else agent
    await submit(ledger, build_cash_out(payer, subscriber, 400_00))
    cash_in = await submit(ledger, build_cash_in(agent, subscriber, 400_00))
    for amount in (100_00, None):
        assert (await reverse(ledger, cash_in, amount)).code is None
        await require_balanced_books(ledger.database)
    await submit(ledger, build_cash_in(agent, subscriber, 400_00))
    assert await ledger.get_balance(agent, chart.COMMISSION) == 0


@pytest.mark.parametrize("spent", ["wallet", "commission", "float"])
async def test_without_funds_nothing_moves(ledger: LedgerDriver, spent: str) -> None:
    await remove_limits(ledger)
    agent, subscriber = await ledger.create_agent(2_000_00), await ledger.create_subscriber()
    other = await ledger.create_subscriber()
    original = await submit(ledger, build_cash_in(agent, subscriber, 1_000_00))
    if spent == "wallet":
        await submit(ledger, build_p2p(subscriber, other, 500_00))
    elif spent == "commission":
        payout = build_command(chart.COMMISSION_PAYOUT, agent, agent, None)
        await submit(ledger, payout)
    else:
        original = await submit(ledger, build_fund(agent, 500_00))
        await submit(ledger, build_cash_in(agent, other, 1_400_00))
    before = await ledger.database.fetch("SELECT id, balance FROM accounts ORDER BY id")

    outcome = await reverse(ledger, original, idempotency_key=build_request_key("r"))

    assert outcome.code == Code.INSUFFICIENT_FUNDS
    assert await ledger.database.fetch("SELECT id, balance FROM accounts ORDER BY id") == before
    assert (await get_row(ledger, original))["status"] == "completed"
    replay = await reverse(ledger, original, idempotency_key=build_request_key("r"))
    assert (replay.code, replay.replayed) == (Code.INSUFFICIENT_FUNDS, True)


async def test_reversible_types_in_both_directions(ledger: LedgerDriver) -> None:
    await remove_limits(ledger)
    agent, subscriber = await ledger.create_agent(500_00), await ledger.create_subscriber(500_00)
    sub_agent = await ledger.create_agent(parent=agent)
    other = await ledger.create_subscriber(100_00)
    processor, partner = await ledger.create_processor(300_00), await ledger.create_partner(200_00)
    clearing = commands.account_party(await ledger.get_account_id(partner))
    await submit(ledger, build_cash_in(agent, subscriber, 100_00))  # earns commission
    balances = await ledger.database.fetch("SELECT id, balance FROM accounts ORDER BY id")
    for command in (
        build_p2p(subscriber, other, 50_00),
        build_command(chart.TRANSFER, subscriber, other, 50_00),
        build_cash_in(agent, other, 20_00),
        build_cash_out(agent, other, 30_00),
        build_fund(agent, 40_00),
        build_command(chart.AGENT_TRANSFER, agent, sub_agent, 10_00),
        build_command(chart.PARTNER_FUND, partner, subscriber, 60_00),
        build_command(chart.PARTNER_DEPOSIT, commands.CASH_PARTY, clearing, 70_00),
        build_command(chart.PROCESSOR_TRANSFER, processor, subscriber, 80_00),
        build_command(chart.COMMISSION_PAYOUT, agent, agent, None),
    ):
        original = await submit(ledger, command)
        outcome = await reverse(ledger, original)
        assert outcome.code is None, (command.type, outcome)
        again = await reverse(ledger, original)
        assert (again.code, again.result) == (Code.NOT_REVERSIBLE, None)
    assert await ledger.database.fetch("SELECT id, balance FROM accounts ORDER BY id") == balances


async def test_what_cannot_be_reversed(ledger: LedgerDriver) -> None:
    sender, receiver = await ledger.create_subscriber(900_00), await ledger.create_subscriber()
    processor = await ledger.create_processor()
    payment = await submit(ledger, build_payment(sender, processor, 10_00, payer_pin=PIN))
    assert (await reverse(ledger, payment)).code == Code.NOT_REVERSIBLE

    declined = await ledger.submit(build_p2p(sender, receiver, 5_000_00))
    assert declined.result is not None
    assert (await reverse(ledger, declined.result.transaction_id)).code == Code.NOT_REVERSIBLE

    transfer = await submit(ledger, build_p2p(sender, receiver, 100_00))
    outcome = await reverse(ledger, transfer, 100_01)
    assert outcome.code == Code.REVERSAL_EXCEEDS_REMAINING
    assert outcome.details == {"reversible_amount": "100.00"}

    reversal = await reverse(ledger, transfer, 40_00)
    assert reversal.result is not None
    assert (await reverse(ledger, reversal.result.transaction_id)).code == Code.NOT_REVERSIBLE
    outcome = await reverse(ledger, transfer, 60_01)
    assert outcome.details == {"reversible_amount": "60.00"}

    assert (await reverse(ledger, 5)).code == Code.NOT_REVERSIBLE


@pytest.mark.parametrize("party", ["sender", "receiver"])
@pytest.mark.parametrize(("status", "code"), [("blocked", None), ("closed", Code.NOT_REVERSIBLE)])
async def test_blocked_parties_can_be_reversed_and_closed_ones_not(
    ledger: LedgerDriver, party: str, status: str, code: Code | None
) -> None:
    people = {
        "sender": await ledger.create_subscriber(100_00),
        "receiver": await ledger.create_subscriber(),
    }
    transfer = await submit(ledger, build_p2p(people["sender"], people["receiver"], 50_00))
    await ledger.database.execute(
        "UPDATE accounts SET status = $2 WHERE owner_id = $1", people[party], status
    )
    assert (await reverse(ledger, transfer)).code == code


async def test_a_reversal_ignores_the_maximum_balance(ledger: LedgerDriver) -> None:
    sender, receiver = await ledger.create_subscriber(500_00), await ledger.create_subscriber()
    transfer = await submit(ledger, build_p2p(sender, receiver, 400_00))
    await ledger.database.execute("UPDATE account_rules SET max_balance = 10000")
    ledger.ledger.invalidate_rules()
    assert (await reverse(ledger, transfer)).code is None


async def test_limits_of_an_earlier_day_are_given_back_for_the_month_only(
    ledger: LedgerDriver,
) -> None:
    sender, receiver = await ledger.create_subscriber(900_00), await ledger.create_subscriber()
    transfer = await submit(ledger, build_p2p(sender, receiver, 100_00))
    ledger.clock.advance(days=1)
    await submit(ledger, build_p2p(sender, receiver, 30_00))
    await reverse(ledger, transfer)
    assert await get_usage(ledger, sender) == (30_00, 30_00)
    ledger.clock.advance(days=30)
    next_month = await submit(ledger, build_p2p(sender, receiver, 20_00))
    await reverse(ledger, next_month)
    assert await get_usage(ledger, sender) == (0, 0)


async def test_a_replayed_reversal_moves_no_money(ledger: LedgerDriver) -> None:
    sender, receiver = await ledger.create_subscriber(900_00), await ledger.create_subscriber()
    transfer = await submit(ledger, build_p2p(sender, receiver, 100_00))
    key = build_request_key("reversal")
    first = await reverse(ledger, transfer, 40_00, idempotency_key=key)
    replay = await reverse(ledger, transfer, 40_00, idempotency_key=key)
    assert (replay.replayed, replay.result) == (True, first.result)
    conflict = build_request_key("reversal", "another")
    rejected = await reverse(ledger, transfer, idempotency_key=conflict)
    assert rejected.code == Code.DUPLICATE_REQUEST
    assert (await get_row(ledger, transfer))["refunded_amount"] == 40_00


async def test_only_one_of_two_parallel_reversals_wins(
    ledger: LedgerDriver, database_url: str
) -> None:
    other = await LedgerDriver.open(database_url, ledger.database, ledger.clock, slot=2)
    try:
        for _ in range(10):
            sender = await ledger.create_subscriber(500_00)
            receiver = await ledger.create_subscriber()
            transfer = await submit(ledger, build_p2p(sender, receiver, 100_00))
            outcomes = await asyncio.gather(reverse(ledger, transfer), reverse(other, transfer))
            assert sorted(str(outcome.code) for outcome in outcomes) == ["NOT_REVERSIBLE", "None"]
            assert await ledger.get_balance(sender) == 500_00
        await require_balanced_books(ledger.database)
    finally:
        await other.close()


async def test_a_reversal_and_a_spend_do_not_both_take_the_money(
    ledger: LedgerDriver, database_url: str
) -> None:
    other = await LedgerDriver.open(database_url, ledger.database, ledger.clock, slot=2)
    third = await ledger.create_subscriber()
    try:
        for _ in range(10):
            sender = await ledger.create_subscriber(500_00)
            receiver = await ledger.create_subscriber()
            transfer = await submit(ledger, build_p2p(sender, receiver, 100_00))
            spend = build_command(chart.TRANSFER, receiver, third, 60_00)
            outcomes = await asyncio.gather(reverse(ledger, transfer), other.submit(spend))
            assert sorted(str(outcome.code) for outcome in outcomes) == [
                "INSUFFICIENT_FUNDS", "None",
            ]  # fmt: skip
        await require_balanced_books(ledger.database)
    finally:
        await other.close()
