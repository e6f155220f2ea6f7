"""Failure: something times out or dies, and money stays reserved that nobody can spend."""

import asyncio
import sys
from pathlib import Path

import msgspec
import pytest

from compliance.builders import list_alerts, resolve_alert, update_rule
from field.market import TwoGateways
from field.two_ledgers import TwoLedgers
from journeys.actors import Customer, new_request_id
from journeys.api_caller import require_error, require_success
from ledger import load_process
from ledger.load_process import LoadPlan
from tapgate import ids
from tapgate.errors import Code
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, ReviewDecision
from tapgate.store.database import Database


async def _require_no_locks_or_holds(database: Database) -> None:
    """Neither money nor names of requests. A session that was killed ends a moment after who asked
    is told, and gives back what it locked then."""
    assert await database.fetchval("SELECT sum(held) FROM accounts") == 0
    async with asyncio.timeout(30):
        while await database.fetchval(
            """SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database
               WHERE locktype = 'advisory' AND datname = current_database()"""
        ):
            await asyncio.sleep(0.01)


async def _lock_account(tx: object, customer: Customer) -> None:
    await tx.execute(
        "SELECT FROM accounts WHERE owner_id = $1 FOR UPDATE",
        ids.decode(ids.SUBSCRIBER, customer.id),
    )


async def _set_review_threshold(ledgers: TwoLedgers, threshold: int) -> None:
    await ledgers.first.database.execute(
        "UPDATE compliance_rules SET status = 'active', threshold = $1 WHERE action = 'review'",
        threshold,
    )
    ledgers.invalidate_rules()


async def test_a_client_that_goes_away_leaves_nothing_reserved(market: TwoGateways) -> None:
    """The payment waits, the client hangs up, and its reservation waits for ever."""
    aminata, till = await market.create_customer("100"), (await market.create_merchant()).server
    database = market.harness.services.database
    names = [new_request_id() for _ in range(10)]
    async with database.transaction() as tx:
        await _lock_account(tx, aminata)
        asked = [
            asyncio.create_task(
                till.with_client(market.clients[number % 2]).pay("5", aminata.card, request_id=name)
            )
            for number, name in enumerate(names)
        ]
        await asyncio.sleep(0.1)
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
    # Each either took place as a whole or not at all, and asked again it ends the same way.
    answers = [await till.pay("5", aminata.card, request_id=name) for name in names]
    assert all(answer.is_success for answer in answers)
    assert await aminata.get_funds() == ("50.00", "0.00")
    await _require_no_locks_or_holds(database)


async def test_a_killed_database_session_leaves_nothing_reserved(market: TwoGateways) -> None:
    """The session dies between taking the money and handing it over."""
    aminata, till = await market.create_customer("100"), (await market.create_merchant()).server
    database, name = market.harness.services.database, new_request_id()
    async with database.transaction() as tx:
        await _lock_account(tx, aminata)
        asked = asyncio.create_task(till.pay("60", aminata.card, request_id=name))
        async with asyncio.timeout(30):
            while not await tx.fetchval(
                """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'"""
            ):
                await asyncio.sleep(0.01)
        answer = await asked
    assert require_error(answer) == (503, "SERVICE_UNAVAILABLE")
    assert answer.headers["Retry-After"]
    assert await aminata.get_funds() == ("100.00", "0.00")
    await _require_no_locks_or_holds(database)
    require_success(
        await till.with_client(market.clients[1]).pay("60", aminata.card, request_id=name)
    )
    assert await aminata.get_funds() == ("40.00", "0.00")


async def test_a_killed_worker_leaves_nothing_reserved(
    two_ledgers: TwoLedgers, database_url: str
) -> None:
    """kill -9 in the middle of a batch: locks, holds or half of a payment stay behind."""
    books, database = two_ledgers.first, two_ledgers.first.database
    await two_ledgers.set_limits(daily_limit=10**9, monthly_limit=10**9)
    wallets = [await books.create_subscriber(1_000_00) for _ in range(3)]
    plan = LoadPlan(
        url=database_url,
        slot=10,
        seed=1,
        wallets=wallets,
        merchants=[await books.create_processor()],
        agents=[await books.create_agent(500_00)],
        cards=[await books.create_card(wallet) for wallet in wallets],
        command_count=400,
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(load_process.__file__)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(msgspec.json.encode(plan))
    process.stdin.close()
    for _ in range(20):
        await process.stdout.readline()
    process.kill()
    await process.communicate()
    # The next one who wants the same wallets has them at once.
    async with asyncio.timeout(30):
        codes = await two_ledgers.submit_concurrently(wallets[0], wallets[1], 1, times=10)
    assert codes == {None: 10}
    await _require_no_locks_or_holds(database)


async def test_a_worker_that_stands_still_holds_nobody_up_for_ever(market: TwoGateways) -> None:
    """A process is stopped while it has locked a wallet: nobody ever spends from it again."""
    patience = "idle_in_transaction_session_timeout"
    shown = await market.harness.services.database.fetchval(f"SHOW {patience}")
    assert shown == "30s"
    aminata, till = await market.create_customer("100"), (await market.create_merchant()).server
    async with market.harness.services.database.connection() as stopped:
        try:
            await stopped.execute("BEGIN")
            await _lock_account(stopped, aminata)
            await stopped.execute(f"SET {patience} = '300ms'")  # from here on it stands still
            require_success(await till.pay("10", aminata.card))
        finally:
            stopped.terminate()
    assert await aminata.get_funds() == ("90.00", "0.00")


async def test_a_review_that_nobody_decides_keeps_the_money_where_it_is(
    two_ledgers: TwoLedgers,
) -> None:
    """A forgotten review: the money is gone for both, or comes free by itself and is spent."""
    books = two_ledgers.first
    await _set_review_threshold(two_ledgers, 50_00)
    sender, receiver = await two_ledgers.create_pair(100_00)
    held = (await two_ledgers.submit_transfer(books, sender, receiver, 80_00)).require_accepted()
    assert held.status == "under_review"
    # There is no expiry: only a decision ends it. Until then it is nobody's to spend.
    two_ledgers.advance_clocks(days=400)
    for process in two_ledgers.ledgers:
        outcome = await two_ledgers.submit_transfer(process, sender, receiver, 20_01)
        assert outcome.code == Code.INSUFFICIENT_FUNDS
    decided = await two_ledgers.second.submit(
        ReviewDecision(transaction_id=held.transaction_id, release=True)
    )
    assert decided.require_accepted().status == "completed"
    assert [await books.get_balance(one) for one in (sender, receiver)] == [20_00, 80_00]
    await _require_no_locks_or_holds(books.database)


@pytest.mark.parametrize("decision", ["release", "reject"])
async def test_a_forgotten_review_is_found_and_can_still_be_decided(
    market: TwoGateways, decision: str
) -> None:
    """Money under review that no list shows."""
    await update_rule(market.harness, "Large amount", threshold="50", status="active")
    aminata, till = await market.create_customer("100"), (await market.create_merchant()).server
    paid = require_success(await till.pay("80", aminata.card))["transaction_id"]
    listed = await market.admin.list_all("transactions", status="under_review")
    assert [one["id"] for one in listed] == [paid]
    (alert,) = await list_alerts(market.harness, status="open")
    assert alert["transaction_id"] == paid
    require_success(await resolve_alert(market.harness, alert["id"], transaction_decision=decision))
    left = "20.00" if decision == "release" else "100.00"
    assert await aminata.get_funds() == (left, "0.00")


async def test_a_rejected_payment_gives_back_the_allowance_it_had_reserved(
    two_ledgers: TwoLedgers,
) -> None:
    """The money comes back, and the limit of the day stays used up."""
    books = two_ledgers.first
    await _set_review_threshold(two_ledgers, 50_00)
    await two_ledgers.set_limits(daily_limit=100_00, monthly_limit=100_00)
    payer, merchant = await books.create_subscriber(200_00), await books.create_processor()
    order = Command(
        type=chart.POS_PAYMENT,
        channel="pos",
        payer=commands.card_party(await books.create_card(payer)),
        payee=commands.processor_party(merchant),
        amount=100_00,
        payer_pin="1234",
    )
    held = (await books.submit(order)).require_accepted()
    again = await two_ledgers.second.submit(order)
    assert again.code == Code.DAILY_LIMIT_EXCEEDED
    await two_ledgers.second.submit(
        ReviewDecision(transaction_id=held.transaction_id, release=False)
    )
    assert (await books.submit(order)).require_accepted().status == "under_review"
