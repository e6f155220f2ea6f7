"""Verification that continues where an earlier one ended."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from builders.ledger import LedgerDriver, build_command, build_refund
from builders.transfers import create_sender_and_receiver, submit_transfer
from tapgate.core.vault import Vault
from tapgate.ledger import chart
from tapgate.ledger.commands import ReviewDecision
from tapgate.ledger.verification import verify
from tapgate.ledger.verification.checkpoints import (
    UNCHANGED,
    save_progress,
    verify_with_checkpoints,
)
from tapgate.runtime.store.database import Database
from tapgate_client.clock import system_clock

_VAULT = Vault("a secret key of thirty-two characters")


@pytest.fixture
async def ledger(database_url: str, database: Database) -> AsyncIterator[LedgerDriver]:
    """Yield a ledger that is not verified after the test, because tests tamper with it."""
    ledger = await LedgerDriver.open(database_url, database)
    yield ledger
    await ledger.close()


@pytest.fixture(autouse=True)
def _small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "RANGE_SIZE", 3)
    monkeypatch.setattr(verify, "MIN_AGE", timedelta(milliseconds=-1))


async def _verify(database: Database, *, full: bool = False, jobs: int = 1) -> dict[str, int]:
    """Verify, save a valid ledger's progress, and return the number of contradictions."""
    async with database.connection() as connection, database.connection() as helper:
        verification, progress = await verify_with_checkpoints(
            connection, _VAULT, full=full, helpers=[helper][: jobs - 1]
        )
        if verification.is_valid:
            await save_progress(connection, _VAULT, progress, system_clock())
    return {
        finding.invariant: finding.broken for finding in verification.findings if finding.broken
    }


async def _pay(ledger: LedgerDriver, count: int) -> tuple[int, int]:
    """Make payments and return the merchant's ID and the last payment's ID."""
    payer, merchant = await ledger.create_subscriber(100_00), await ledger.create_processor()
    card = await ledger.create_card(payer)
    for _ in range(count):
        command = build_command(chart.POS_PAYMENT, card, merchant, 1_00)
        payment = (await ledger.submit(command)).require_accepted()
    return merchant, payment.transaction_id


async def _tamper(database: Database, sql: str) -> None:
    await database.execute(
        f"SET session_replication_role = replica; {sql}; SET session_replication_role = origin"
    )


#: As computed by the first release that stored checkpoints.
_DIGEST = """
    SELECT sha256(convert_to(concat(
        (SELECT string_agg(concat_ws(' ', transaction_id, position, debit_account, credit_account,
                                     amount), ';' ORDER BY transaction_id, position)
         FROM entries WHERE transaction_id >= $1 AND transaction_id < $2 AND transaction_id NOT IN (
             SELECT id FROM transactions WHERE held > 0)),
        '|',
        (SELECT string_agg(concat_ws(' ', id, type, amount, fee_amount, currency,
                                     coalesce(from_account, 0), coalesce(to_account, 0),
                                     extract(epoch FROM created_at)), ';' ORDER BY id)
         FROM transactions WHERE id >= $1 AND id < $2 AND held = 0)), 'UTF8'))"""


async def test_digests_do_not_depend_on_the_release(ledger: LedgerDriver) -> None:
    await _pay(ledger, 5)
    outcome = await submit_transfer(ledger, *await create_sender_and_receiver(ledger))
    held = outcome.require_accepted().transaction_id
    (await ledger.submit(ReviewDecision(transaction_id=held, release=True))).require_accepted()
    assert await _verify(ledger.database) == {}
    rows = await ledger.database.fetch("SELECT first_id, end_id, digest FROM verified_ranges")
    assert len(rows) > 2
    for first_id, end_id, digest in rows:
        assert await ledger.database.fetchval(_DIGEST, first_id, end_id) == digest


@pytest.mark.parametrize("jobs", [1, 2])
async def test_ranges_cover_all_transactions_once(ledger: LedgerDriver, jobs: int) -> None:
    await _pay(ledger, 10)
    assert await _verify(ledger.database, jobs=jobs) == {}
    rows = await ledger.database.fetch("SELECT * FROM verified_ranges ORDER BY end_id")
    assert len(rows) > 3
    assert [row["first_id"] for row in rows] == [0, *(row["end_id"] for row in rows[:-1])]
    expected = await ledger.database.fetchval("SELECT count(*) FROM transactions")
    assert sum(row["transactions"] for row in rows) == expected
    different = """
        SELECT FROM accounts JOIN verified_sums ON account_id = id
        WHERE checked AND balance <> amount"""
    assert await ledger.database.fetch(different) == []


async def test_verification_continues_after_refunds_and_reviews(ledger: LedgerDriver) -> None:
    merchant, payment = await _pay(ledger, 5)
    sender, receiver = await create_sender_and_receiver(ledger)
    held = (await submit_transfer(ledger, sender, receiver)).require_accepted()
    assert held.status == "under_review"
    assert await _verify(ledger.database) == {}
    ledger.clock.advance(hours=1)
    (await ledger.submit(build_refund(merchant, payment, 40))).require_accepted()
    release = ReviewDecision(transaction_id=held.transaction_id, release=True)
    (await ledger.submit(release)).require_accepted()
    await _pay(ledger, 4)
    assert await _verify(ledger.database) == {}
    assert await _verify(ledger.database, full=True) == {}


@pytest.mark.parametrize(
    ("tampering", "invariant"),
    [
        ("UPDATE accounts SET balance = balance + 1 WHERE kind = 'wallet'",
         "every balance is the sum of its entries"),
        ("UPDATE accounts SET held = 1 WHERE kind = 'wallet'",
         "held funds match payments under review and open recalls"),
        ("UPDATE verified_sums SET amount = amount + 1", UNCHANGED),
        ("DELETE FROM verified_sums", UNCHANGED),
        ("UPDATE verified_ranges SET digest = '\\x00'", UNCHANGED),
        ("DELETE FROM verified_ranges WHERE first_id = 0", UNCHANGED),
        ("DELETE FROM verified_ranges WHERE end_id = (SELECT max(end_id) FROM verified_ranges)",
         UNCHANGED),
        ("DELETE FROM verified_sums_seal", UNCHANGED),
    ],
)  # fmt: skip
async def test_verification_from_a_checkpoint_finds(
    ledger: LedgerDriver, tampering: str, invariant: str
) -> None:
    await _pay(ledger, 5)
    assert await _verify(ledger.database) == {}
    await _tamper(ledger.database, tampering)
    assert invariant in await _verify(ledger.database)


async def test_verification_of_everything_finds_a_consistent_forgery(ledger: LedgerDriver) -> None:
    """Entries, transactions, balances, limits and totals agree, but are not those verified."""
    _, payment = await _pay(ledger, 5)
    assert await _verify(ledger.database) == {}
    await _tamper(
        ledger.database,
        f"""UPDATE transactions SET created_at = created_at + interval '1 microsecond'
            WHERE id = {payment}""",
    )
    assert await _verify(ledger.database) == {}
    assert await _verify(ledger.database, full=True) == {UNCHANGED: 1}


async def test_changed_entry_before_the_checkpoint_is_found_by_reading_everything(
    ledger: LedgerDriver,
) -> None:
    await _pay(ledger, 5)
    assert await _verify(ledger.database) == {}
    await _tamper(ledger.database, "UPDATE entries SET amount = amount + 1 WHERE position = 0")
    assert await _verify(ledger.database) == {}
    broken = await _verify(ledger.database, full=True)
    assert {"every balance is the sum of its entries", UNCHANGED} <= broken.keys()


async def test_transactions_from_a_clock_that_was_ahead_are_not_final(ledger: LedgerDriver) -> None:
    """Transactions of other nodes follow, with lower IDs than the newest."""
    await _pay(ledger, 4)
    start = ledger.clock.now
    ledger.clock.now = system_clock() + timedelta(days=1)
    await _pay(ledger, 4)
    assert await _verify(ledger.database) == {}
    ledger.clock.now = max(start, system_clock() + timedelta(hours=1))
    await _pay(ledger, 4)
    assert await _verify(ledger.database) == {}
    assert await _verify(ledger.database, full=True) == {}


async def test_range_never_spans_two_months(
    ledger: LedgerDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if they share a partition, which may be divided later."""
    monkeypatch.setattr(verify, "RANGE_SIZE", 50_000)
    for days in (70, 35, 0):
        ledger.clock.now = system_clock() - timedelta(days=days)
        await _pay(ledger, 2)
    assert await _verify(ledger.database) == {}
    months = await ledger.database.fetch(
        """SELECT count(DISTINCT date_trunc('month', created_at))
           FROM transactions JOIN verified_ranges ON id >= first_id AND id < end_id
           GROUP BY end_id"""
    )
    assert [row[0] for row in months] == [1, 1, 1]
