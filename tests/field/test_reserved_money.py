"""Failure: something times out or dies, and money stays reserved that nobody can spend."""

import asyncio
import sys
from pathlib import Path

import msgspec
import pytest

from compliance.stage import alerts, change_rule, resolve
from field.market import Market
from field.two_ledgers import TwoLedgers
from journeys.caller import done, refused
from journeys.people import Customer, new_request_id
from ledger import hammer
from ledger.hammer import Plan
from tapgate import ids
from tapgate.errors import Code
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, ReviewDecision
from tapgate.store.database import Database


async def _require_nothing_reserved(database: Database) -> None:
    """Neither money nor names of requests. A session that was killed ends a moment after who asked
    is told, and gives back what it locked then."""
    assert await database.fetchval("SELECT sum(held) FROM accounts") == 0
    async with asyncio.timeout(30):
        while await database.fetchval(
            """SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database
               WHERE locktype = 'advisory' AND datname = current_database()"""
        ):
            await asyncio.sleep(0.01)


async def _locked(tx: object, customer: Customer) -> None:
    await tx.execute(
        "SELECT FROM accounts WHERE owner_id = $1 FOR UPDATE",
        ids.decode(ids.SUBSCRIBER, customer.id),
    )


async def _review_from(ledgers: TwoLedgers, threshold: int) -> None:
    await ledgers.first.database.execute(
        "UPDATE compliance_rules SET status = 'active', threshold = $1 WHERE action = 'review'",
        threshold,
    )
    ledgers.forget_rules()


async def test_a_client_that_goes_away_leaves_nothing_reserved(market: Market) -> None:
    """The payment waits, the client hangs up, and its reservation waits for ever."""
    aminata, till = await market.customer("100"), (await market.merchant()).server
    database = market.world.services.database
    names = [new_request_id() for _ in range(10)]
    async with database.transaction() as tx:
        await _locked(tx, aminata)
        asked = [
            asyncio.create_task(
                till.over(market.lines[number % 2]).pay("5", aminata.card, request_id=name)
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
    assert await aminata.funds() == ("50.00", "0.00")
    await _require_nothing_reserved(database)


async def test_a_killed_database_session_leaves_nothing_reserved(market: Market) -> None:
    """The session dies between taking the money and handing it over."""
    aminata, till = await market.customer("100"), (await market.merchant()).server
    database, name = market.world.services.database, new_request_id()
    async with database.transaction() as tx:
        await _locked(tx, aminata)
        asked = asyncio.create_task(till.pay("60", aminata.card, request_id=name))
        async with asyncio.timeout(30):
            while not await tx.fetchval(
                """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'"""
            ):
                await asyncio.sleep(0.01)
        answer = await asked
    assert refused(answer) == (503, "SERVICE_UNAVAILABLE")
    assert answer.headers["Retry-After"]
    assert await aminata.funds() == ("100.00", "0.00")
    await _require_nothing_reserved(database)
    done(await till.over(market.lines[1]).pay("60", aminata.card, request_id=name))
    assert await aminata.funds() == ("40.00", "0.00")


async def test_a_killed_worker_leaves_nothing_reserved(
    two_ledgers: TwoLedgers, database_url: str
) -> None:
    """kill -9 in the middle of a batch: locks, holds or half of a payment stay behind."""
    books, database = two_ledgers.first, two_ledgers.first.database
    await two_ledgers.give_limits(daily_limit=10**9, monthly_limit=10**9)
    wallets = [await books.subscriber(1_000_00) for _ in range(3)]
    plan = Plan(
        url=database_url,
        slot=10,
        seed=1,
        wallets=wallets,
        merchants=[await books.processor()],
        agents=[await books.agent(500_00)],
        cards=[await books.card(wallet) for wallet in wallets],
        orders=400,
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(hammer.__file__)),
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
        codes = await two_ledgers.spend_at_once(wallets[0], wallets[1], 1, times=10)
    assert codes == {None: 10}
    await _require_nothing_reserved(database)


async def test_a_worker_that_stands_still_holds_nobody_up_for_ever(market: Market) -> None:
    """A process is stopped while it has locked a wallet: nobody ever spends from it again."""
    patience = "idle_in_transaction_session_timeout"
    shown = await market.world.services.database.fetchval(f"SHOW {patience}")
    assert shown == "30s"
    aminata, till = await market.customer("100"), (await market.merchant()).server
    async with market.world.services.database.connection() as stopped:
        try:
            await stopped.execute("BEGIN")
            await _locked(stopped, aminata)
            await stopped.execute(f"SET {patience} = '300ms'")  # from here on it stands still
            done(await till.pay("10", aminata.card))
        finally:
            stopped.terminate()
    assert await aminata.funds() == ("90.00", "0.00")


async def test_a_review_that_nobody_decides_keeps_the_money_where_it_is(
    two_ledgers: TwoLedgers,
) -> None:
    """A forgotten review: the money is gone for both, or comes free by itself and is spent."""
    books = two_ledgers.first
    await _review_from(two_ledgers, 50_00)
    sender, receiver = await two_ledgers.pair(100_00)
    held = (await two_ledgers.spend(books, sender, receiver, 80_00)).require_accepted()
    assert held.status == "under_review"
    # There is no expiry: only a decision ends it. Until then it is nobody's to spend.
    two_ledgers.move(days=400)
    for process in two_ledgers.both:
        outcome = await two_ledgers.spend(process, sender, receiver, 20_01)
        assert outcome.code == Code.INSUFFICIENT_FUNDS
    decided = await two_ledgers.second.submit(
        ReviewDecision(transaction_id=held.transaction_id, release=True)
    )
    assert decided.require_accepted().status == "completed"
    assert [await books.balance(one) for one in (sender, receiver)] == [20_00, 80_00]
    await _require_nothing_reserved(books.database)


@pytest.mark.parametrize("decision", ["release", "reject"])
async def test_a_forgotten_review_is_found_and_can_still_be_decided(
    market: Market, decision: str
) -> None:
    """Money under review that no list shows."""
    await change_rule(market.world, "Large amount", threshold="50", status="active")
    aminata, till = await market.customer("100"), (await market.merchant()).server
    paid = done(await till.pay("80", aminata.card))["transaction_id"]
    listed = await market.ada.everything("transactions", status="under_review")
    assert [one["id"] for one in listed] == [paid]
    (alert,) = await alerts(market.world, status="open")
    assert alert["transaction_id"] == paid
    done(await resolve(market.world, alert["id"], transaction_decision=decision))
    left = "20.00" if decision == "release" else "100.00"
    assert await aminata.funds() == (left, "0.00")


async def test_a_rejected_payment_gives_back_the_allowance_it_had_reserved(
    two_ledgers: TwoLedgers,
) -> None:
    """The money comes back, and the limit of the day stays used up."""
    books = two_ledgers.first
    await _review_from(two_ledgers, 50_00)
    await two_ledgers.give_limits(daily_limit=100_00, monthly_limit=100_00)
    payer, merchant = await books.subscriber(200_00), await books.processor()
    order = Command(
        type=chart.POS_PAYMENT,
        channel="pos",
        payer=commands.card_party(await books.card(payer)),
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
