"""Commission on cash-in and cash-out: circulating cash earns each only once in 24 hours."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.ledger import (
    PIN,
    LedgerDriver,
    build_cash_in,
    build_cash_out,
    build_command,
    build_payment,
    build_request_key,
    remove_limits,
    require_balanced_books,
)
from builders.ledger_model import InMemoryLedger, build_rules
from builders.retention import delete_expired
from examples import limit_examples
from ledger.reference_model import Step
from tapgate.ledger import chart
from tapgate.ledger.commands import Command, ReviewDecision
from tapgate.ledger.decisions import earned_commission
from tapgate.ledger.decisions.state import State
from tapgate.ledger.rules.commission import CommissionRate
from tapgate.runtime.store.database import Database
from tapgate_client.errors import Code

DAY = timedelta(days=1)


async def submit_and_get_commission(ledger: LedgerDriver, command: Command) -> int:
    return (await ledger.submit(command)).require_accepted().commission


async def create_agent_and_customer(ledger: LedgerDriver) -> tuple[int, int]:
    await remove_limits(ledger)
    return await ledger.create_agent(100_000_00), await ledger.create_subscriber(50_000_00)


async def set_commission_rate(ledger: LedgerDriver, kind: str, rate: int) -> None:
    await ledger.database.execute(
        "UPDATE commission_rules SET rate = $2 WHERE type = $1", kind, rate
    )
    ledger.ledger.invalidate_rules()


async def hold_for_review(ledger: LedgerDriver, kind: str, subject: str) -> None:
    """Hold every transaction of a type for review."""
    await ledger.database.execute(
        """INSERT INTO compliance_rules (id, name, type, subject, transaction_types, threshold,
                                         action, severity)
           VALUES ($1, 'Held', 'AMOUNT_THRESHOLD', $2, ARRAY[$3], 0, 'review', 'LOW')""",
        ledger.new_id(),
        subject,
        kind,
    )
    ledger.ledger.invalidate_rules()


async def decide_review(ledger: LedgerDriver, transaction_id: int, *, release: bool = True) -> int:
    command = ReviewDecision(transaction_id=transaction_id, release=release)
    return (await ledger.submit(command)).require_accepted().commission


async def test_cash_in_earns_only_on_the_excess_over_recent_cash_out(ledger: LedgerDriver) -> None:
    agent, customer = await create_agent_and_customer(ledger)
    assert await submit_and_get_commission(ledger, build_cash_out(agent, customer, 400_00)) == 0
    assert await submit_and_get_commission(ledger, build_cash_in(agent, customer, 1_000_00)) == 6_00
    found = await submit_and_get_commission(ledger, build_cash_in(agent, customer, 1_000_00))
    assert found == 10_00


async def test_several_cash_ins_consume_earlier_cash_outs(ledger: LedgerDriver) -> None:
    agent, customer = await create_agent_and_customer(ledger)
    for amount in (300_00, 300_00):
        await ledger.submit(build_cash_out(agent, customer, amount))
    assert await submit_and_get_commission(ledger, build_cash_in(agent, customer, 200_00)) == 0
    found = await submit_and_get_commission(ledger, build_cash_in(agent, customer, 5_00))
    assert found == 0  # below the minimum
    assert await submit_and_get_commission(ledger, build_cash_in(agent, customer, 500_00)) == 1_05
    rows = await ledger.database.fetch(
        "SELECT amount FROM cash_matches ORDER BY matched_id, amount"
    )
    assert sum(row["amount"] for row in rows) == 600_00


async def test_commission_in_one_batch_equals_that_of_separate_batches(
    ledger: LedgerDriver,
) -> None:
    agent, customer = await create_agent_and_customer(ledger)
    outcomes = await ledger.submit_batch(
        [
            build_cash_out(agent, customer, 400_00),
            build_cash_in(agent, customer, 1_000_00),
            build_cash_in(agent, customer, 1_000_00),
        ]
    )
    assert [outcome.require_accepted().commission for outcome in outcomes] == [0, 6_00, 10_00]


async def test_cash_matches_only_the_same_agent_and_customer(ledger: LedgerDriver) -> None:
    agent, customer = await create_agent_and_customer(ledger)
    other_agent, other_customer = await create_agent_and_customer(ledger)
    await ledger.submit(build_cash_out(agent, customer, 1_000_00))
    found = await submit_and_get_commission(ledger, build_cash_in(other_agent, customer, 1_000_00))
    assert found == 10_00
    found = await submit_and_get_commission(ledger, build_cash_in(agent, other_customer, 1_000_00))
    assert found == 10_00
    assert await submit_and_get_commission(ledger, build_cash_in(agent, customer, 1_000_00)) == 0


async def test_money_that_circulates_in_a_family_earns_commission_once(
    ledger: LedgerDriver,
) -> None:
    parent, customer = await create_agent_and_customer(ledger)
    child = await ledger.create_agent(10_000_00, parent=parent)
    sibling = await ledger.create_agent(10_000_00, parent=parent)
    stranger, _ = await create_agent_and_customer(ledger)
    earned = []
    for outgoing in (parent, sibling, child, parent):
        cash_in = build_cash_in(child, customer, 1_000_00)
        earned.append(await submit_and_get_commission(ledger, cash_in))
        await ledger.submit(build_cash_out(outgoing, customer, 1_000_00))
    assert earned == [10_00, 0, 0, 0]
    found = await submit_and_get_commission(ledger, build_cash_in(parent, customer, 1_000_00))
    assert found == 0
    await ledger.submit(build_cash_out(stranger, customer, 1_000_00))
    found = await submit_and_get_commission(ledger, build_cash_in(sibling, customer, 1_000_00))
    assert found == 10_00


async def test_released_cash_out_is_matched_in_the_family(ledger: LedgerDriver) -> None:
    parent, customer = await create_agent_and_customer(ledger)
    child = await ledger.create_agent(10_000_00, parent=parent)
    await hold_for_review(ledger, chart.AGENT_CASHOUT, "payer")
    held = await ledger.submit(build_cash_out(parent, customer, 1_000_00))
    ledger.clock.now += 3 * DAY  # longer ago than its ID's time shows
    await decide_review(ledger, held.require_accepted().transaction_id)
    found = await submit_and_get_commission(ledger, build_cash_in(child, customer, 1_000_00))
    assert found == 0


@pytest.mark.parametrize(("elapsed", "expected"), [(DAY, 0), (DAY + timedelta(seconds=1), 10_00)])
async def test_cash_out_is_matched_for_24_hours(
    ledger: LedgerDriver, elapsed: timedelta, expected: int
) -> None:
    agent, customer = await create_agent_and_customer(ledger)
    await ledger.submit(build_cash_out(agent, customer, 1_000_00))
    ledger.clock.now += elapsed
    found = await submit_and_get_commission(ledger, build_cash_in(agent, customer, 1_000_00))
    assert found == expected


async def test_declined_and_rejected_cash_transactions_are_not_matched(
    ledger: LedgerDriver,
) -> None:
    agent, customer = await create_agent_and_customer(ledger)
    declined = await ledger.submit(build_cash_out(agent, customer, 60_000_00))
    assert declined.code == Code.INSUFFICIENT_FUNDS
    wrong_pin = build_command(
        chart.AGENT_CASHOUT, customer, agent, 500_00, payer_pin=PIN, payee_pin="9999"
    )
    assert (await ledger.submit(wrong_pin)).code == Code.INVALID_PIN
    await ledger.submit(build_cash_out(agent, customer, 400_00))
    declined = await ledger.submit(build_cash_in(agent, customer, 200_000_00))
    assert declined.code == Code.INSUFFICIENT_FLOAT
    assert await submit_and_get_commission(ledger, build_cash_in(agent, customer, 1_000_00)) == 6_00


async def test_replayed_cash_in_consumes_no_cash_out(ledger: LedgerDriver) -> None:
    agent, customer = await create_agent_and_customer(ledger)
    await ledger.submit(build_cash_out(agent, customer, 500_00))
    command = msgspec.structs.replace(
        build_cash_in(agent, customer, 400_00), idempotency_key=build_request_key("again")
    )
    for _ in range(3):
        assert await submit_and_get_commission(ledger, command) == 0
    assert await submit_and_get_commission(ledger, build_cash_in(agent, customer, 200_00)) == 1_00


async def test_held_cash_out_is_matched_from_its_release(ledger: LedgerDriver) -> None:
    agent, customer = await create_agent_and_customer(ledger)
    await hold_for_review(ledger, chart.AGENT_CASHOUT, "payer")
    held = (await ledger.submit(build_cash_out(agent, customer, 400_00))).require_accepted()
    assert held.status == "under_review"
    found = await submit_and_get_commission(ledger, build_cash_in(agent, customer, 1_000_00))
    assert found == 10_00
    ledger.clock.now += 3 * DAY
    await decide_review(ledger, held.transaction_id)
    ledger.clock.now += DAY
    assert await submit_and_get_commission(ledger, build_cash_in(agent, customer, 1_000_00)) == 6_00


async def test_cash_out_rejected_in_review_is_not_matched(ledger: LedgerDriver) -> None:
    agent, customer = await create_agent_and_customer(ledger)
    await hold_for_review(ledger, chart.AGENT_CASHOUT, "agent")
    held = (await ledger.submit(build_cash_out(agent, customer, 400_00))).require_accepted()
    await decide_review(ledger, held.transaction_id, release=False)
    found = await submit_and_get_commission(ledger, build_cash_in(agent, customer, 1_000_00))
    assert found == 10_00


async def test_held_cash_in_earns_on_release(ledger: LedgerDriver) -> None:
    agent, customer = await create_agent_and_customer(ledger)
    await ledger.submit(build_cash_out(agent, customer, 400_00))
    await hold_for_review(ledger, chart.AGENT_CASHIN, "payee")
    first, second = [
        (await ledger.submit(build_cash_in(agent, customer, 1_000_00))).require_accepted()
        for _ in range(2)
    ]
    assert (first.status, first.commission) == ("under_review", 0)
    assert await ledger.get_balance(agent, chart.COMMISSION) == 0
    # A rejected cash-in consumes nothing, and a long review does not expire the cash-out.
    await decide_review(ledger, first.transaction_id, release=False)
    ledger.clock.now += 3 * DAY
    assert await decide_review(ledger, second.transaction_id) == 6_00
    assert await ledger.get_balance(agent, chart.COMMISSION) == 6_00


async def test_circulating_cash_earns_each_commission_once_per_24_hours(
    ledger: LedgerDriver,
) -> None:
    agent, customer = await create_agent_and_customer(ledger)
    await set_commission_rate(ledger, chart.AGENT_CASHOUT, 500)
    commands = [build_cash_in(agent, customer, 1_000_00), build_cash_out(agent, customer, 1_000_00)]
    assert [await submit_and_get_commission(ledger, command) for command in commands] == [
        10_00,
        5_00,
    ]
    for _ in range(3):
        assert [await submit_and_get_commission(ledger, command) for command in commands] == [0, 0]
    ledger.clock.now += 2 * DAY
    assert [await submit_and_get_commission(ledger, command) for command in commands] == [
        10_00,
        5_00,
    ]


async def test_rounding_remainder_is_carried_over(ledger: LedgerDriver) -> None:
    """1% of 10.50 is 10.5 cents, which must not round up every time."""
    agent, customer = await create_agent_and_customer(ledger)
    commissions = [
        await submit_and_get_commission(ledger, build_cash_in(agent, customer, 10_50))
        for _ in range(6)
    ]
    assert commissions == [11, 10, 11, 10, 11, 10]


async def test_amount_below_the_minimum_earns_nothing(ledger: LedgerDriver) -> None:
    agent, customer = await create_agent_and_customer(ledger)
    found = [
        await submit_and_get_commission(ledger, build_cash_in(agent, customer, 9_99))
        for _ in range(20)
    ]
    assert found == [0] * 20
    assert await submit_and_get_commission(ledger, build_cash_in(agent, customer, 10_00)) == 10


async def test_commission_statements_run_only_for_cash_and_once_per_batch(
    ledger: LedgerDriver, statements: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, customer = await create_agent_and_customer(ledger)
    merchant = await ledger.create_processor()
    loads: list[int] = []
    load = earned_commission.load_movements

    async def count_loads(tx: Any, since: Any) -> Any:
        loads.append(len(since))
        return await load(tx, since)

    monkeypatch.setattr(earned_commission, "load_movements", count_loads)
    await ledger.submit(build_payment(customer, merchant, 50_00))
    assert loads == []
    assert not [sql for sql in statements if "cash_matches" in sql or "UPDATE agents" in sql]
    customers = [await ledger.create_subscriber(10_00) for _ in range(3)]
    await ledger.submit_batch(
        [build_cash_out(agent, payer, 10_00) for payer in [*customers, customer]]
    )
    await ledger.submit_batch(
        [build_cash_in(agent, payer, 10_50) for payer in [*customers, customer]]
    )
    assert loads == [4, 4]
    assert len([sql for sql in statements if "INSERT INTO cash_matches" in sql]) == 1


async def test_recent_cash_query_uses_its_index(ledger: LedgerDriver) -> None:
    """Tests empty tables, because a connection may keep a plan made before the first rows."""
    plans: list[str] = []
    async with ledger.ledger.database.connection() as connection:

        class ExplainingConnection:
            async def fetch(self, sql: str, *values: Any) -> list[Any]:
                rows = await connection.fetch(f"EXPLAIN {sql}", *values)
                plans.append("\n".join(row[0] for row in rows))
                return []

        await earned_commission.load_movements(
            ExplainingConnection(), {earned_commission.CashPair(1, 2): ledger.clock()}
        )
    assert "transactions_cash" not in plans[0]
    scans = re.findall(r"(\w+ Scan).* on (transactions_\w+|released_cash)", plans[0])
    assert {kind for kind, _ in scans} == {"Index Scan"}
    assert plans[0].count("completed_at >= pair.since") == len(scans) == 3


async def test_books_are_balanced_after_old_matches_were_deleted(ledger: LedgerDriver) -> None:
    agent, customer = await create_agent_and_customer(ledger)
    for _ in range(3):
        await ledger.submit(build_cash_out(agent, customer, 10_00))
        await ledger.submit(build_cash_in(agent, customer, 10_00))
        await delete_expired(ledger.database, ledger.clock, "cash_matches")
        ledger.clock.now += timedelta(days=16)
        await require_balanced_books(ledger.database)
    assert await ledger.database.fetchval("SELECT count(*) FROM cash_matches") == 2


@pytest.fixture
async def processes(database_url: str, database: Database) -> AsyncIterator[list[LedgerDriver]]:
    """Yield three ledgers on the same database, as in three processes."""
    drivers = [await LedgerDriver.open(database_url, database, slot=slot) for slot in (1, 2, 3)]
    try:
        yield drivers
        await require_balanced_books(database)
    finally:
        for ledger in drivers:
            await ledger.close()


async def test_concurrent_cash_ins_do_not_earn_on_the_same_cash(
    processes: list[LedgerDriver],
) -> None:
    """The order in which the processes acquire the locks does not matter."""
    ledger = processes[0]
    agent, customer = await create_agent_and_customer(ledger)
    for other in processes[1:]:
        other.ledger.invalidate_rules()
    for _ in range(5):
        before = await ledger.get_balance(agent, chart.COMMISSION)
        await ledger.submit(build_cash_out(agent, customer, 1_000_00))
        await asyncio.gather(
            *(
                processes[index % 3].submit(build_cash_in(agent, customer, 100_00))
                for index in range(15)
            )
        )
        assert await ledger.get_balance(agent, chart.COMMISSION) - before == 5_00


async def test_concurrent_cash_ins_in_a_family_do_not_earn_on_the_same_cash(
    processes: list[LedgerDriver],
) -> None:
    ledger = processes[0]
    parent, customer = await create_agent_and_customer(ledger)
    agents = [parent, *[await ledger.create_agent(10_000_00, parent=parent) for _ in range(2)]]
    for other in processes[1:]:
        other.ledger.invalidate_rules()
    await ledger.submit(build_cash_out(parent, customer, 1_000_00))
    await asyncio.gather(
        *(
            processes[index % 3].submit(build_cash_in(agents[index % 3], customer, 100_00))
            for index in range(15)
        )
    )
    earned = [await ledger.get_balance(agent, chart.COMMISSION) for agent in agents]
    assert sum(earned) == 5_00


async def test_concurrent_round_trips_earn_nothing(processes: list[LedgerDriver]) -> None:
    """Equal cash-ins and cash-outs in any order, with an earlier cash-out above their sum."""
    ledger = processes[0]
    agent, customer = await create_agent_and_customer(ledger)
    for other in processes[1:]:
        other.ledger.invalidate_rules()
    await ledger.submit(build_cash_out(agent, customer, 20_000_00))  # covers all cash-ins below
    commands = [
        build_cash_in(agent, customer, 100_00),
        build_cash_out(agent, customer, 100_00),
    ] * 30
    outcomes = await asyncio.gather(
        *(processes[index % 3].submit(command) for index, command in enumerate(commands))
    )
    assert all(outcome.require_accepted().status == "completed" for outcome in outcomes)
    assert await ledger.get_balance(agent, chart.COMMISSION) == 0


movements = st.lists(
    st.tuples(st.integers(-500, 500).filter(bool), st.sampled_from(["agent", "sub"])),
    min_size=1,
    max_size=25,
)


class InMemoryAgent(InMemoryLedger):
    """An agent, its sub-agent and one customer without limits.

    At the default rate, the commission equals the commissionable amount.
    """

    def __init__(self, rate: int = 100_000) -> None:
        super().__init__()
        base = build_rules()
        self.state.rules = msgspec.structs.replace(
            base,
            compliance_rules=(),
            limits={
                level: msgspec.structs.replace(
                    limits,
                    max_balance=10**9,
                    max_transaction=10**9,
                    daily_limit=10**9,
                    monthly_limit=10**9,
                )
                for level, limits in base.limits.items()
            },
            commissions={
                (kind, 1): CommissionRate(type=kind, tier=1, rate=rate, minimum_amount=0)
                for kind in chart.CASH_TYPES
            },
        )
        for account in self.state.accounts.values():
            account.balance += 10**6

    def move_cash(self, amount: int, agent: str = "agent") -> int:
        """Submit a cash-in (positive) or cash-out (negative), and return its commission."""
        before = self.total_commission
        kind = chart.AGENT_CASHIN if amount > 0 else chart.AGENT_CASHOUT
        payer, payee = (agent, "w0") if amount > 0 else ("w0", agent)
        assert self.run(Step(kind, payer, payee, abs(amount))) == "completed"
        return self.total_commission - before

    @property
    def total_commission(self) -> int:
        state: State = self.state
        return -state.accounts[state.rules.platform_accounts[chart.COMMISSION_EXPENSE]].balance


@settings(max_examples=limit_examples(500))
@given(movements)
def test_cash_in_earns_on_peak_net_inflow_and_cash_out_at_most_on_its_range(
    amounts: list[tuple[int, str]],
) -> None:
    """Within a day, cash-in earns on the highest net inflow to a family.

    Cash-out earns at most on the difference between the highest and the lowest net inflow.
    """
    family = InMemoryAgent()
    earned_in = earned_out = net = highest = lowest = 0
    for amount, agent in amounts:
        commission = family.move_cash(amount, agent)
        net += amount
        highest, lowest = max(highest, net), min(lowest, net)
        earned_in += commission if amount > 0 else 0
        earned_out += commission if amount < 0 else 0
        assert earned_in == highest
        assert earned_out <= highest - lowest


@settings(max_examples=limit_examples(300))
@given(
    st.lists(st.integers(1, 400), min_size=1, max_size=20),
    st.integers(1, 100_000),
    st.integers(0, 2_000),
)
def test_splitting_an_amount_earns_no_extra_commission(
    parts: list[int], rate: int, cashed_out: int
) -> None:
    whole, split = InMemoryAgent(rate), InMemoryAgent(rate)
    for agent in (whole, split):
        if cashed_out:
            agent.move_cash(-cashed_out)
    assert sum(split.move_cash(part) for part in parts) == whole.move_cash(sum(parts))
