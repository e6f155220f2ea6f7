"""Archived months: balances, statements and verification stay right, and nothing is lost."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from builders.auth import FakeClock
from builders.ledger import (
    LedgerDriver,
    build_command,
    build_refund,
    build_request_key,
    require_balanced_books,
)
from ledger.test_reviews import create_sender_and_receiver, submit_transfer
from tapgate.clock import system_clock
from tapgate.errors import ApiError, Code
from tapgate.general_ledger.queries import load_totals
from tapgate.ledger import archive as archive_steps
from tapgate.ledger import chart, verify
from tapgate.ledger.archive_job import ArchiveJob
from tapgate.ledger.archived import load_archive
from tapgate.ledger.checkpoints import save_progress, verify_with_checkpoints
from tapgate.ledger.commands import ReviewDecision
from tapgate.ledger.maintenance import ensure_partitions
from tapgate.store import StoreError
from tapgate.store.database import Database
from tapgate.vault import Vault
from tapgate.wallets.statements.queries import load_activity

_VAULT = Vault("a secret key of thirty-two characters")
_MARCH = datetime(2026, 3, 10, 12, tzinfo=UTC)
_MAY, _JUNE, _JULY = (datetime(2026, month, 1, tzinfo=UTC) for month in (5, 6, 7))


class InterruptError(Exception):
    pass


class History:
    """Payments from March to June, and the job that archives them."""

    def __init__(self, ledger: LedgerDriver, folder: Path) -> None:
        self.ledger = ledger
        self.database = ledger.database
        self.folder = folder
        self.audited: list[tuple[str, str]] = []
        self.interrupt: Callable[[], None] = lambda: None

    async def create(self) -> None:
        ledger = self.ledger
        self.payer = await ledger.create_subscriber(1000_00)
        self.merchant = await ledger.create_processor(10_00)
        self.payments: list[int] = []
        for month in range(4):
            ledger.clock.now = _MARCH + timedelta(days=30 * month)
            await self.pay(f"key {month}")
            refund = build_refund(self.merchant, await self.pay(), 50)
            (await ledger.submit(refund)).require_accepted()
            sender, receiver = await create_sender_and_receiver(ledger)
            held = (await submit_transfer(ledger, sender, receiver)).require_accepted()
            # The transfer of April is released in May.
            ledger.clock.now += timedelta(days=25 if month == 1 else 1)
            await ledger.submit(ReviewDecision(transaction_id=held.transaction_id, release=True))

    async def pay(self, key: str | None = None) -> int:
        command = build_command(
            chart.POS_PAYMENT,
            self.payer,
            self.merchant,
            1_00,
            idempotency_key=key and build_request_key(key),
        )
        outcome = (await self.ledger.submit(command)).require_accepted()
        self.payments.append(outcome.transaction_id)
        return outcome.transaction_id

    async def verify(self, *, full: bool = False) -> dict[str, list[str]]:
        async with self.database.connection() as connection:
            proof, progress = await verify_with_checkpoints(connection, _VAULT, full=full)
            if proof.is_valid:
                await save_progress(connection, _VAULT, progress, system_clock())
        self.proof = proof
        return {finding.claim: finding.examples for finding in proof.findings if finding.broken}

    async def run(self, before: datetime = _JUNE, *, drop: bool = False) -> list[str]:
        async with self.database.dedicated_connection() as connection:
            job = self._open_job(connection)
            return [line async for line in job.run(before, self.folder, drop=drop)]

    async def restore(self) -> str:
        async with self.database.dedicated_connection() as connection:
            return await self._open_job(connection).restore(self.folder)

    def _open_job(self, connection: asyncpg.Connection) -> ArchiveJob:
        async def audit(tx: Any, action: str, month: str) -> None:
            self.audited.append((action, month))

        return ArchiveJob(
            InterruptedConnection(connection, self),
            _VAULT,
            clock=self.ledger.clock,
            new_id=self.ledger.new_id,
            actor_id="command line:test",
            audit=audit,
            report=lambda name, size: None,
        )

    async def read_balances(self) -> Any:
        """Return everything that must not depend on archived months."""
        rows = await self.database.fetch("SELECT id FROM accounts WHERE checked ORDER BY id")
        activities = [await load_activity(self.database, row["id"], _JUNE, _JULY) for row in rows]
        return await self.read_totals(), activities

    async def read_totals(self) -> Any:
        return [(await load_totals(self.database, end))[1] for end in (None, _JUNE, _JULY)]

    async def read_rows(self) -> Any:
        return [
            [
                row[0]
                for row in await self.database.fetch(f"SELECT t::text FROM {table} t ORDER BY 1")
            ]
            for table in ("transactions", "entries")
        ]


class InterruptedConnection:
    """Connection that may fail before each change, as if the process were killed."""

    def __init__(self, connection: asyncpg.Connection, history: History) -> None:
        self._connection = connection
        self._history = history

    def __getattr__(self, name: str) -> Any:
        if name in ("execute", "copy_from_query", "copy_to_table"):
            self._history.interrupt()
        return getattr(self._connection, name)


@pytest.fixture
async def history(
    database_url: str, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[History]:
    monkeypatch.setattr(verify, "RANGE_SIZE", 3)
    await ensure_partitions(database, _MARCH)
    ledger = await LedgerDriver.open(database_url, database, FakeClock(_MARCH))
    await database.execute("UPDATE compliance_rules SET status = 'inactive' WHERE action = 'block'")
    history = History(ledger, tmp_path / "archive")
    try:
        await history.create()
        yield history
        assert await history.verify(full=True) == {}
        await require_balanced_books(database)
    finally:
        await ledger.close()


async def test_balances_and_statements_are_the_same_after_archiving(history: History) -> None:
    assert await history.verify() == {}
    counts = history.proof.transactions, history.proof.entries
    before = await history.read_balances()
    lines = await history.run()
    assert [line.partition(":")[0] for line in lines] == [
        "2026_03", "2026_03", "2026_04", "2026_04", "2026_05", "2026_05",
    ]  # fmt: skip
    assert await history.read_balances() == before
    for full in (False, True):
        assert await history.verify(full=full) == {}
        assert (history.proof.transactions, history.proof.entries) == counts
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
    await history.run(_MAY)
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
    # A payment of a month that is not archived can still be refunded.
    refund = build_refund(history.merchant, history.payments[-2], 10)
    (await history.ledger.submit(refund)).require_accepted()


async def test_periods_of_archived_months_are_rejected(history: History) -> None:
    assert await history.verify() == {}
    await history.run(_MAY)
    account_id = await history.ledger.get_account_id(history.payer)
    with pytest.raises(ApiError, match=Code.VALIDATION_FAILED):
        await load_activity(history.database, account_id, _MAY - timedelta(days=1), _JULY)
    with pytest.raises(ApiError, match=Code.VALIDATION_FAILED):
        await load_totals(history.database, _MAY - timedelta(days=1))


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
    history.ledger.clock.now = _MAY
    sender, receiver = await create_sender_and_receiver(history.ledger)
    held = (await submit_transfer(history.ledger, sender, receiver)).require_accepted()
    history.ledger.clock.now = _JULY
    assert await history.verify() == {}
    with pytest.raises(StoreError, match="2026_05 has 1 transactions under review"):
        await history.run()
    async with history.database.connection() as connection:
        assert [month.name for month in (await load_archive(connection)).months] == [
            "2026_03", "2026_04"
        ]  # fmt: skip
    await history.ledger.submit(ReviewDecision(transaction_id=held.transaction_id, release=True))
    assert len(await history.run()) == 2


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
    await history.run(_MAY)
    path = history.folder / "entries_2026_04.csv.gz"
    contents = path.read_bytes()
    path.write_bytes(contents[:-1] + b"x")
    with pytest.raises(StoreError, match=r"entries_2026_04\.csv\.gz was changed"):
        await history.run(_MAY, drop=True)
    path.write_bytes(contents)
    await history.run(_MAY, drop=True)
    path.write_bytes(contents[:-1] + b"x")
    with pytest.raises(StoreError, match=r"entries_2026_04\.csv\.gz was changed"):
        await history.restore()


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
    """A payment holds a lock for longer than the archive waits, in both of its transactions."""
    monkeypatch.setattr(archive_steps, "_PAUSE_SECONDS", 0)
    assert await history.verify() == {}
    attempts = 0
    detach = archive_steps._detach

    async def detach_late(tx: Any, *arguments: Any) -> None:
        nonlocal attempts
        attempts += 1
        await history.pay()
        if attempts % 3:
            raise asyncpg.LockNotAvailableError
        await detach(tx, *arguments)

    monkeypatch.setattr(archive_steps, "_detach", detach_late)
    await history.run()
    assert attempts == 18
