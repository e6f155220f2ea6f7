"""Archived months after interruptions, backups, upgrades and late transactions."""

import copy
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from builders.archive import JULY, JUNE, MARCH, MAY, History, InterruptError
from builders.ledger import build_command, build_refund
from builders.transfers import create_sender_and_receiver
from drivers.backups import restore_backup, save_backup
from tapgate.ledger import chart
from tapgate.ledger.archive import archive_steps
from tapgate.ledger.commands import ReviewDecision
from tapgate.runtime.store import StoreError
from tapgate.runtime.store.database import Database

_APRIL = datetime(2026, 4, 1, tzinfo=UTC)


async def _interrupt(
    monkeypatch: pytest.MonkeyPatch, step: str, work: Callable[[], Awaitable[Any]]
) -> None:
    async def fail(*_: object) -> None:
        raise InterruptError

    with monkeypatch.context() as patch:
        patch.setattr(archive_steps, step, fail)
        with pytest.raises(InterruptError):
            await work()


async def test_refund_during_an_interrupted_restore_is_exported_before_the_drop(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await history.verify() == {}
    await history.run(_APRIL)
    await _interrupt(monkeypatch, "_sum_archived", history.restore)
    refund = build_refund(history.merchant, history.payments[0], 1_00)
    (await history.ledger.submit(refund)).require_accepted()
    lines = await history.run(_APRIL, drop=True)
    assert lines == [f"2026_03: exported to {history.folder}", "2026_03: tables dropped"]
    assert await history.restore() == "2026_03"
    refunded = "SELECT refunded_amount FROM transactions WHERE id = $1"
    assert await history.database.fetchval(refunded, history.payments[0]) == 1_00


async def test_month_between_detachment_and_export(
    history: History, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A backup is refused, and a payment from a node with a wrong clock stays in the ledger."""
    assert await history.verify() == {}
    await _interrupt(monkeypatch, "finish_month", lambda: history.run(_APRIL))
    with pytest.raises(StoreError, match="2026_03 is being archived"):
        await save_backup(history.url, tmp_path / "backup")
    history.ledger.clock.now = MARCH
    late = await history.pay()
    history.ledger.clock.now = JULY
    await history.run(_APRIL)
    table = "SELECT tableoid::regclass::text FROM transactions WHERE id = $1"
    assert await history.database.fetchval(table, late) == "transactions_initial"
    assert await history.verify(full=True) == {}
    await save_backup(history.url, tmp_path / "backup")


@pytest.mark.parametrize("drop", [False, True])
async def test_installation_restored_from_a_backup_uses_its_archive(
    history: History, empty_database_url: str, tmp_path: Path, drop: bool
) -> None:
    assert await history.verify() == {}
    rows = await history.read_rows()
    await history.run(MAY, drop=drop)
    await save_backup(history.url, tmp_path / "backup")
    await restore_backup(empty_database_url, tmp_path / "backup")
    restored = copy.copy(history)
    restored.database = await Database.connect(empty_database_url)
    try:
        expected = [] if drop else ["2026_03: tables dropped", "2026_04: tables dropped"]
        assert await restored.run(MAY, drop=True) == expected
        assert len(await restored.run(JUNE)) == 2
        months = [await restored.restore() for _ in range(3)]
        assert months == ["2026_05", "2026_04", "2026_03"]
        assert await restored.read_rows() == rows
        assert await restored.verify(full=True) == {}
    finally:
        await restored.database.close()


async def test_undivided_transactions_prevent_archiving(history: History) -> None:
    history.ledger.clock.now = MARCH - timedelta(days=40)
    await history.pay()
    with pytest.raises(StoreError, match=r"Only Tapgate 1\.x can divide them"):
        await history.run()


async def test_refund_of_a_payment_that_stayed_stays_too(history: History) -> None:
    """A payment of April is released and refunded in May."""
    ledger = history.ledger
    await history.database.execute(
        """UPDATE compliance_rules SET transaction_types = transaction_types || '{pos_payment}'
           WHERE 'transfer_p2p' = ANY (transaction_types)"""
    )
    ledger.ledger.invalidate_rules()
    ledger.clock.now = datetime(2026, 4, 28, tzinfo=UTC)
    sender, _ = await create_sender_and_receiver(ledger)
    payment = build_command(chart.POS_PAYMENT, sender, history.merchant, 600_000_00)
    held = (await ledger.submit(payment)).require_accepted()
    ledger.clock.now = datetime(2026, 5, 8, tzinfo=UTC)
    await ledger.submit(ReviewDecision(transaction_id=held.transaction_id, release=True))
    refund = build_refund(history.merchant, held.transaction_id, 1_00)
    (await ledger.submit(refund)).require_accepted()
    ledger.clock.now = JULY
    assert await history.verify() == {}
    rows, balances = await history.read_rows(), await history.read_balances()
    await history.run()
    refunds = "SELECT count(*) FROM transactions WHERE original_id = $1"
    assert await history.database.fetchval(refunds, held.transaction_id) == 1
    assert await history.verify(full=True) == {}
    assert await history.read_balances() == balances
    for _ in range(3):
        await history.restore()
    assert await history.read_rows() == rows


async def test_entry_that_was_added_after_the_comparison_is_found(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await history.verify() == {}
    read = archive_steps.read_contents
    change = "SET session_replication_role = replica; {}; SET session_replication_role = origin"
    entry = history.payments[0]

    async def read_and_add(*arguments: Any) -> Any:
        contents = await read(*arguments)
        await history.database.execute(
            change.format(f"INSERT INTO entries VALUES ({entry}, 9, 1, 2, 5)")
        )
        return contents

    monkeypatch.setattr(archive_steps, "read_contents", read_and_add)
    with pytest.raises(StoreError, match="2026_03 was changed while it was archived"):
        await history.run()
    assert await history.database.fetchval("SELECT count(*) FROM archived_months") == 0
    assert history.audited == []
    await history.database.execute(
        change.format(f"DELETE FROM entries WHERE transaction_id = {entry} AND position = 9")
    )


async def test_tables_with_columns_of_an_older_release_are_loaded_from_the_files(
    history: History,
) -> None:
    assert await history.verify() == {}
    await history.run(_APRIL)
    count = "SELECT count(*) FROM transactions_2026_03 WHERE added = 7"
    await history.database.execute(
        "ALTER TABLE transactions ADD COLUMN added bigint NOT NULL DEFAULT 7"
    )
    manifest = history.folder / "2026_03.json"
    manifest.rename(history.folder / "moved")
    with pytest.raises(StoreError, match=r"2026_03\.json cannot be read"):
        await history.restore()
    (history.folder / "moved").rename(manifest)
    assert await history.restore() == "2026_03"
    assert await history.database.fetchval(count) > 0
