"""A batch that waited for a lock reads everything that was committed under the lock.

Two sessions of PostgreSQL work concurrently: one holds the lock on the payer's account until the
other waits for it. A statement that locks and reads has a snapshot from before it waited.
"""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from builders.ledger import (
    AUDIT,
    PIN,
    WRONG_PIN,
    LedgerDriver,
    build_command,
    build_payment,
    build_request_key,
    require_balanced_books,
)
from tapgate.ledger import chart
from tapgate.ledger.commands import Command, Outcome
from tapgate.runtime.store.database import Database
from tapgate_client.errors import Code


@pytest.fixture
async def other_ledger(
    ledger: LedgerDriver, database_url: str, database: Database
) -> AsyncIterator[LedgerDriver]:
    other = await LedgerDriver.open(database_url, database, clock=ledger.clock, slot=2)
    try:
        yield other
        await require_balanced_books(database)
    finally:
        await other.close()


async def wait_for_lock(database: Database) -> None:
    """Wait until a session waits for a lock."""
    while not await database.fetchval(
        """SELECT EXISTS (SELECT FROM pg_stat_activity
                          WHERE datname = current_database() AND wait_event_type = 'Lock')"""
    ):
        await asyncio.sleep(0.01)


async def submit_while_locked(
    ledger: LedgerDriver, other: LedgerDriver, first: Command, second: Command
) -> list[Outcome]:
    """Submit the second command to another ledger while the first waits to be committed."""
    is_locked = asyncio.Event()

    async def hold_locks(*_: object) -> None:
        is_locked.set()
        await wait_for_lock(ledger.database)

    ledger.before_commit = hold_locks
    holder = asyncio.create_task(ledger.submit(msgspec.structs.replace(first, audit=AUDIT)))
    await is_locked.wait()
    outcomes = [await other.submit(second), await holder]
    assert other.ledger.batch_stats.retries == 0
    return outcomes


async def test_same_request_is_a_replay(ledger: LedgerDriver, other_ledger: LedgerDriver) -> None:
    payer, merchant = await ledger.create_subscriber(10_00), await ledger.create_processor()
    payment = build_payment(payer, merchant, 1_00, idempotency_key=build_request_key("same"))
    second, first = await submit_while_locked(ledger, other_ledger, payment, payment)
    assert (first.replayed, second.replayed) == (False, True)
    assert first.require_accepted().transaction_id == second.require_accepted().transaction_id
    assert await ledger.get_balance(payer) == 9_00


async def test_balance_is_not_spent_twice(ledger: LedgerDriver, other_ledger: LedgerDriver) -> None:
    payer, merchant = await ledger.create_subscriber(10_00), await ledger.create_processor()
    payment = build_payment(payer, merchant, 6_00)
    second, first = await submit_while_locked(ledger, other_ledger, payment, payment)
    assert (first.code, second.code) == (None, Code.INSUFFICIENT_FUNDS)


@pytest.mark.parametrize("is_card", [False, True])
async def test_window_contains_the_other_payment(
    ledger: LedgerDriver, other_ledger: LedgerDriver, *, is_card: bool
) -> None:
    """The 21st payment in a day is blocked."""
    payer, merchant = await ledger.create_subscriber(100_00), await ledger.create_processor()
    card = await ledger.create_card(payer)
    payment = build_command(chart.POS_PAYMENT, card if is_card else payer, merchant, 1_00)
    for _ in range(19):
        (await ledger.submit(payment)).require_accepted()
    second, first = await submit_while_locked(ledger, other_ledger, payment, payment)
    assert (first.code, second.code) == (None, Code.COMPLIANCE_REJECTED)


async def test_card_limit_contains_the_other_payment(
    ledger: LedgerDriver, other_ledger: LedgerDriver
) -> None:
    payer, merchant = await ledger.create_subscriber(100_00), await ledger.create_processor()
    card = await ledger.create_card(payer, daily_limit=10_00, pin=PIN)
    payment = build_command(chart.POS_PAYMENT, card, merchant, 6_00, payer_pin=PIN)
    second, first = await submit_while_locked(ledger, other_ledger, payment, payment)
    assert (first.code, second.code) == (None, Code.CARD_LIMIT_EXCEEDED)


CHANGES = {
    "UPDATE cards SET status = 'BLOCKED' WHERE account_id = $1": Code.CARD_NOT_ACTIVE,
    "UPDATE accounts SET status = 'blocked' WHERE id = $1": Code.SUBSCRIBER_BLOCKED,
    """UPDATE pins SET locked_until = '2100-01-01'
       WHERE holder_id = (SELECT owner_id FROM accounts WHERE id = $1)""": Code.ACCOUNT_LOCKED,
    """UPDATE pins SET verifier = 'changed'
       WHERE holder_id = (SELECT owner_id FROM accounts WHERE id = $1)""": Code.INVALID_PIN,
}


@pytest.mark.parametrize(
    ("change", "code", "is_card"),
    [
        (change, code, is_card)
        for change, code in CHANGES.items()
        for is_card in (False, True)
        if is_card or "cards" not in change
    ],
)
async def test_change_by_an_operator_applies_to_the_waiting_payment(
    ledger: LedgerDriver, change: str, code: Code, *, is_card: bool
) -> None:
    payer, merchant = await ledger.create_subscriber(10_00), await ledger.create_processor()
    card = await ledger.create_card(payer)
    party = card if is_card else payer
    payment = build_command(chart.POS_PAYMENT, party, merchant, 1_00, payer_pin=PIN)
    account_id = await ledger.get_account_id(payer)
    async with ledger.database.transaction() as tx:
        await tx.execute("SELECT FROM accounts WHERE id = $1 FOR NO KEY UPDATE", account_id)
        await tx.execute(change, account_id)
        waiting = asyncio.create_task(ledger.submit(payment))
        await wait_for_lock(ledger.database)
    assert (await waiting).code == code


async def test_wrong_pin_count_contains_the_other_attempts(
    ledger: LedgerDriver, other_ledger: LedgerDriver
) -> None:
    """Two ledgers concurrently: three wrong attempts, however they are ordered."""
    payer, merchant = await ledger.create_subscriber(10_00), await ledger.create_processor()
    payment = build_payment(payer, merchant, 1_00, payer_pin=WRONG_PIN)
    outcomes = await asyncio.gather(
        *(driver.submit(payment) for _ in range(10) for driver in (ledger, other_ledger))
    )
    codes = sorted(str(outcome.code) for outcome in outcomes)
    assert codes == sorted([Code.INVALID_PIN] * 3 + [Code.ACCOUNT_LOCKED] * 17)
