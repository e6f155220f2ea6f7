"""Archiving while backups, verifications and reports run."""

import asyncio
import io
from datetime import UTC, date, datetime, timedelta
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from builders import archive
from builders.archive import History
from builders.branding import BRANDING
from drivers.backups import VAULT, ignore_progress
from tapgate.business.finance.general_ledger import queries
from tapgate.business.finance.general_ledger.journal import export_journal
from tapgate.ledger.archive import archive_steps
from tapgate.ledger.archive.archived import require_live
from tapgate.ledger.verification import checkpoints, verify
from tapgate.runtime.store import StoreError, backup
from tapgate_client.clock import system_clock
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.general_ledger import JournalQuery
from tapgate_client.schemas.periods import parse_period_end, parse_period_start

_APRIL, _MAY, _JUNE = (datetime(2026, month, 1, tzinfo=UTC) for month in (4, 5, 6))
_LATER = datetime(2026, 7, 10, tzinfo=UTC)
_COUNT_WAITING = """
    SELECT count(*) FROM pg_locks
    WHERE relation = 'verified_sums_seal'::regclass AND NOT granted"""


async def _pay_later(history: History) -> None:
    """Make payments that a verification adds to the checkpoints."""
    for days in range(2):
        history.ledger.clock.now = _LATER + timedelta(days=days)
        await history.pay()


async def test_month_is_not_archived_while_a_backup_reads_it(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The backup's snapshot is taken, and no entry is read yet."""
    assert await history.verify() == {}
    monkeypatch.setattr(archive_steps, "MAX_ATTEMPTS", 1)
    build_manifest = backup.build_manifest

    async def archive_and_build(*arguments: Any) -> Any:
        with pytest.raises(StoreError, match="other sessions use the tables"):
            await history.run()
        return await build_manifest(*arguments)

    monkeypatch.setattr(backup, "build_manifest", archive_and_build)
    manifest, _ = await backup.create_backup(history.url, io.BytesIO(), VAULT, ignore_progress)
    assert manifest.tables["archived_months"] == 0
    for table in ("entries", "transactions"):
        count = await history.database.fetchval(f"SELECT count(*) FROM {table}")
        assert manifest.tables[table] == count
    assert len(await history.run()) == 6


async def test_progress_from_before_a_month_was_archived_is_not_stored(history: History) -> None:
    assert await history.verify() == {}
    await _pay_later(history)
    end = "SELECT end_id FROM verified_sums_seal"
    verified = await history.database.fetchval(end)
    async with history.database.connection() as connection:
        verification, progress = await checkpoints.verify_with_checkpoints(
            connection, archive.VAULT
        )
        assert verification.is_valid
        await history.run()
        await checkpoints.save_progress(connection, archive.VAULT, progress, system_clock())
    assert await history.database.fetchval(end) == verified
    for _ in range(2):
        assert await history.verify() == {}
    assert await history.database.fetchval(end) > verified


async def test_verification_waits_while_archiving_changes_the_checkpoints(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await history.verify() == {}
    await _pay_later(history)
    load_sums = checkpoints.load_sums
    verifications: list[asyncio.Task[dict[str, list[str]]]] = []

    async def load_and_verify(*arguments: Any) -> Any:
        sums = await load_sums(*arguments)
        monkeypatch.setattr(checkpoints, "load_sums", load_sums)
        verifications.append(asyncio.create_task(history.verify()))
        async with asyncio.timeout(60):
            while not await history.database.fetchval(_COUNT_WAITING):
                await asyncio.sleep(0.01)
        return sums

    monkeypatch.setattr(checkpoints, "load_sums", load_and_verify)
    await history.run(_APRIL)
    assert await asyncio.gather(*verifications) == [{}]
    assert await history.verify() == {}
    assert len(await history.run()) == 4


async def test_ranges_that_span_months_are_divided_by_a_full_verification(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger in one partition was verified by the previous release, and divided later."""

    async def list_no_months(*_: object) -> list[int]:
        return []

    with monkeypatch.context() as patch:
        patch.setattr(verify, "RANGE_SIZE", 7)
        patch.setattr(verify, "list_months", list_no_months)
        assert await history.verify() == {}
    assert await history.verify() == {}
    with pytest.raises(StoreError, match="2026_03 is not verified"):
        await history.run()
    assert await history.verify(full=True) == {}
    assert await history.verify() == {}
    assert len(await history.run()) == 6


async def test_error_has_the_first_possible_day_in_the_time_zone(history: History) -> None:
    assert await history.verify() == {}
    await history.run(_MAY)
    zones = ("UTC", "Africa/Nairobi", "America/New_York")
    parsers = ((parse_period_start, False), (parse_period_end, True))
    for name, (parse, is_end) in product(zones, parsers):
        accepted = []
        for offset in range(-3, 4):
            day = date(2026, 5, 1) + timedelta(days=offset)
            moment = parse(day.isoformat(), ZoneInfo(name))
            assert moment is not None
            try:
                await require_live(history.database, moment, "day", is_end=is_end)
            except ApiError as error:
                message = str(error.details)
            else:
                accepted.append(day)
        assert f"must be {accepted[0]} or later" in message


async def test_journal_of_a_month_that_is_archived_between_its_pages_is_rejected(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await history.verify() == {}
    list_entries = queries.list_entries

    async def archive_and_list(*arguments: Any) -> Any:
        await history.run(_APRIL)
        return await list_entries(*arguments)

    monkeypatch.setattr(queries, "list_entries", archive_and_list)
    query = JournalQuery(day="2026-03-10")
    with pytest.raises(ApiError, match=Code.VALIDATION_FAILED):
        await export_journal(
            history.database, query, BRANDING, zone=ZoneInfo("UTC"), currency="SLE"
        )
