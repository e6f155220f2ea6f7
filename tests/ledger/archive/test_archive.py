"""Archived months: balances, statements and verification stay right, and nothing is lost."""

import gzip
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from builders.archive import JULY, MAY, VAULT, History, InterruptError
from builders.ledger import (
    build_command,
    build_refund,
    build_request_key,
)
from builders.transfers import create_sender_and_receiver, send_to_other_book, submit_transfer
from tapgate.business.finance.general_ledger.queries import load_totals
from tapgate.business.payments.wallets.statements.queries import load_activity
from tapgate.core.vault import Vault
from tapgate.ledger import chart
from tapgate.ledger.archive import archive_steps
from tapgate.ledger.archive.archived import load_archive
from tapgate.ledger.commands import ReviewDecision
from tapgate.runtime.store import StoreError
from tapgate.runtime.store.archive_files import compute_sha256, read_rows
from tapgate_client.errors import ApiError, Code


async def test_balances_and_statements_are_the_same_after_archiving(history: History) -> None:
    assert await history.verify() == {}
    counts = history.verification.transactions, history.verification.entries
    before = await history.read_balances()
    lines = await history.run()
    assert [line.partition(":")[0] for line in lines] == [
        "2026_03", "2026_03", "2026_04", "2026_04", "2026_05", "2026_05",
    ]  # fmt: skip
    assert await history.read_balances() == before
    for full in (False, True):
        assert await history.verify(full=full) == {}
        assert (history.verification.transactions, history.verification.entries) == counts
    await history.pay()
    assert await history.verify() == {}
    assert history.audited == [("archived", f"2026_0{month}") for month in (3, 4, 5)]
    remaining = (
        "SELECT min(id) FROM transactions WHERE id >= (SELECT max(end_id) FROM archived_months)"
    )
    assert await history.database.fetchval(remaining) is not None
    assert await history.run() == []


async def test_transaction_that_completed_in_a_later_month_stays_in_the_ledger(
    history: History,
) -> None:
    released = await history.database.fetchval(
        "SELECT id FROM transactions WHERE held > 0 AND completed_at - created_at > '20 days'"
    )
    assert await history.verify() == {}
    await history.run(MAY)
    rows = await history.database.fetch(
        "SELECT tableoid::regclass::text FROM transactions WHERE id = $1", released
    )
    assert [row[0] for row in rows] == ["transactions_initial"]
    kept = "SELECT count(*) FROM entries_initial WHERE transaction_id = $1"
    assert await history.database.fetchval(kept, released) == 2  # the amount and the fee
    assert await history.verify() == {}


async def test_archived_payment_cannot_be_refunded_or_repeated(history: History) -> None:
    assert await history.verify() == {}
    await history.run()
    refund = build_refund(history.merchant, history.payments[0], 10)
    outcome = await history.ledger.submit(refund)
    assert (outcome.code, outcome.details) == (Code.NOT_REFUNDABLE, {"reason": "archived"})
    balance = await history.ledger.get_balance(history.payer)
    command = build_command(
        chart.POS_PAYMENT,
        history.payer,
        history.merchant,
        1_00,
        idempotency_key=build_request_key("key 0"),
    )
    outcome = await history.ledger.submit(command)
    assert (outcome.code, outcome.details) == (Code.DUPLICATE_REQUEST, {"reason": "archived"})
    assert await history.ledger.get_balance(history.payer) == balance
    # A payment from a month that is not archived can still be refunded.
    refund = build_refund(history.merchant, history.payments[-2], 10)
    (await history.ledger.submit(refund)).require_accepted()


async def test_periods_of_archived_months_are_rejected(history: History) -> None:
    assert await history.verify() == {}
    await history.run(MAY)
    account_id = await history.ledger.get_account_id(history.payer)
    with pytest.raises(ApiError, match=Code.VALIDATION_FAILED):
        await load_activity(history.database, account_id, MAY - timedelta(days=1), JULY)
    with pytest.raises(ApiError, match=Code.VALIDATION_FAILED):
        await load_totals(history.database, MAY - timedelta(days=1))


async def test_unverified_month_is_not_archived(history: History) -> None:
    with pytest.raises(StoreError, match="2026_03 is not verified"):
        await history.run()


async def test_month_that_was_changed_after_verification_is_not_archived(history: History) -> None:
    assert await history.verify() == {}
    change = """
        SET session_replication_role = replica;
        UPDATE entries SET amount = amount {} 1 WHERE transaction_id = (
            SELECT min(transaction_id) FROM entries);
        SET session_replication_role = origin"""
    await history.database.execute(change.format("+"))
    with pytest.raises(StoreError, match="2026_03 was changed"):
        await history.run()
    await history.database.execute(change.format("-"))


async def test_month_with_transactions_under_review_is_not_archived(history: History) -> None:
    history.ledger.clock.now = MAY
    sender, receiver = await create_sender_and_receiver(history.ledger)
    held = (await submit_transfer(history.ledger, sender, receiver)).require_accepted()
    history.ledger.clock.now = JULY
    assert await history.verify() == {}
    with pytest.raises(StoreError, match="2026_05 has 1 transactions under review"):
        await history.run()
    async with history.database.connection() as connection:
        found = [month.name for month in (await load_archive(connection)).months]
        assert found == [ "2026_03", "2026_04" ]  # fmt: skip
    await history.ledger.submit(ReviewDecision(transaction_id=held.transaction_id, release=True))
    assert len(await history.run()) == 2


async def test_month_with_pending_transfers_to_other_books_is_not_archived(
    history: History,
) -> None:
    history.ledger.clock.now = MAY
    await send_to_other_book(history.ledger)
    history.ledger.clock.now = JULY
    assert await history.verify() == {}
    with pytest.raises(StoreError, match="2026_05 has 1 pending transfers to other books"):
        await history.run()
    await history.database.execute("UPDATE book_transfers SET status = 'delivered'")
    await history.run()
    assert await history.verify(full=True) == {}


async def test_changed_archive_is_detected(history: History) -> None:
    assert await history.verify() == {}
    await history.run()
    change = """UPDATE archived_sums SET amount = amount {}
                WHERE account_id = (SELECT min(account_id) FROM archived_sums)"""
    await history.database.execute(change.format("+ 1"))
    assert "a checkpoint was changed or removed" in str(await history.verify())
    with pytest.raises(StoreError, match="archived months were changed"):
        await history.run()
    await history.database.execute(change.format("- 1"))


@pytest.mark.parametrize("drop", [False, True])
async def test_restored_months_have_the_same_rows(history: History, drop: bool) -> None:
    assert await history.verify() == {}
    rows, balances = await history.read_rows(), await history.read_balances()
    await history.run(drop=drop)
    tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'archive'::regnamespace"
    assert bool(await history.database.fetchval(f"{tables} AND relkind = 'r'")) != drop
    assert await history.verify() == {}
    assert [await history.restore() for _ in range(3)] == ["2026_05", "2026_04", "2026_03"]
    assert await history.read_rows() == rows
    assert await history.read_balances() == balances
    assert await history.verify() == {}
    with pytest.raises(StoreError, match="no month is archived"):
        await history.restore()
    assert len(await history.run()) == 6


async def test_changed_file_is_neither_restored_nor_a_reason_to_drop(history: History) -> None:
    assert await history.verify() == {}
    await history.run(MAY)
    path = history.folder / "entries_2026_04.csv.gz.sealed"
    contents = path.read_bytes()
    path.write_bytes(contents[:-1] + b"x")
    with pytest.raises(StoreError, match=r"entries_2026_04\.csv\.gz\.sealed was changed"):
        await history.run(MAY, drop=True)
    path.write_bytes(contents)
    await history.run(MAY, drop=True)
    path.write_bytes(contents[:-1] + b"x")
    with pytest.raises(StoreError, match=r"entries_2026_04\.csv\.gz\.sealed was changed"):
        await history.restore()


async def test_files_are_readable_only_with_the_secret_key(history: History) -> None:
    assert await history.verify() == {}
    await history.run(MAY)
    for path in history.folder.glob("*.sealed"):
        contents = path.read_bytes()
        header, *rows = b"".join(read_rows(path, VAULT)).splitlines()
        assert header.startswith((b"id,", b"transaction_id,"))
        assert rows
        assert all(part not in contents for part in (header, rows[0], b"\x1f\x8b\x08"))
        with pytest.raises(StoreError, match="was created with secret key"):
            list(read_rows(path, Vault("another secret key of thirty-two characters")))
        path.write_bytes(contents[:-1])
        with pytest.raises(StoreError, match="authentication failed"):
            next(read_rows(path, VAULT))
        path.write_bytes(contents)


async def test_plain_files_of_earlier_releases_are_restored(history: History) -> None:
    assert await history.verify() == {}
    rows = await history.read_rows()
    await history.run(MAY, drop=True)
    await _write_first_format(history)
    assert [await history.restore() for _ in range(2)] == ["2026_04", "2026_03"]
    assert await history.read_rows() == rows
    assert await history.verify() == {}


async def _write_first_format(history: History) -> None:
    """Replace the files by those that releases without encryption wrote."""
    digests: dict[str, dict[str, str]] = {}
    for path in history.folder.glob("*.sealed"):
        plain = path.with_suffix("")
        plain.write_bytes(gzip.compress(b"".join(read_rows(path, VAULT)), mtime=0))
        path.unlink()
        month = plain.name.partition("_")[2].partition(".")[0]
        digests.setdefault(month, {})[plain.name] = compute_sha256(plain)
    for month, files in digests.items():
        path = history.folder / f"{month}.json"
        path.write_text(path.read_text().replace(".csv.gz.sealed", ".csv.gz"))
        await history.database.execute(
            "UPDATE archived_months SET files = $2 WHERE name = $1", month, files
        )


async def test_manifest_of_other_files_is_rejected(history: History) -> None:
    assert await history.verify() == {}
    await history.run(MAY)
    path = history.folder / "2026_04.json"
    path.write_text(path.read_text().replace("entries_", "../entries_"))
    with pytest.raises(StoreError, match="it does not name the files of 2026_04"):
        await history.run(MAY, drop=True)


async def test_interruption_before_any_change_loses_nothing(history: History) -> None:
    """Every run is interrupted one change later than the last, until it ends."""
    assert await history.verify() == {}
    before, rows = await history.read_totals(), await history.read_rows()
    left = 0

    def interrupt() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise InterruptError

    async def repeat(work: Callable[[], Any]) -> int:
        nonlocal left
        for attempt in range(200):
            history.interrupt, left = interrupt, attempt
            try:
                await work()
            except InterruptError:
                history.interrupt = lambda: None
                assert await history.read_totals() == before
            else:
                history.interrupt = lambda: None
                return attempt
        raise AssertionError

    async def archive() -> None:
        await history.run(datetime(2026, 4, 1, tzinfo=UTC), drop=True)

    assert await repeat(archive) > 10
    assert await history.verify() == {}
    assert await repeat(history.restore) > 5
    assert await history.read_rows() == rows


async def test_payments_continue_while_months_are_archived(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A payment holds a lock for longer than the archive waits, in both archive transactions."""
    monkeypatch.setattr(archive_steps, "PAUSE_SECONDS", 0)
    assert await history.verify() == {}
    attempts = 0
    detach = archive_steps.detach

    async def detach_late(tx: Any, *arguments: Any) -> None:
        nonlocal attempts
        attempts += 1
        await history.pay()
        if attempts % 3:
            raise asyncpg.LockNotAvailableError
        await detach(tx, *arguments)

    monkeypatch.setattr(archive_steps, "detach", detach_late)
    await history.run()
    assert attempts == 18
