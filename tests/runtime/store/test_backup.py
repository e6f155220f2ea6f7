"""Backup and restore: a restore is all or nothing, and errors are reported in one line."""

import asyncio
import contextlib
import io
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest

from drivers.backups import (
    VAULT,
    dump_schema,
    fetch_rows,
    get_database_name,
    ignore_progress,
    is_empty,
    list_files,
    restore_backup,
    save_backup,
    wait_until_idle,
)
from drivers.network_faults import run_proxy
from harness import Harness
from runtime.store.conftest import build_tcp_url
from tapgate.core.id_generator import first_id_at
from tapgate.runtime.store import StoreError, restore
from tapgate.runtime.store.backup import create_backup
from tapgate.runtime.store.backup_file import BackupReader
from tapgate.runtime.store.migrate import MIGRATION_LOCK_KEY, migrate
from tapgate_client.clock import system_clock


async def test_restore_reproduces_schema_rows_and_sequences(
    harness: Harness, database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    await harness.create_subscriber(balance="100.00")
    manifest = await save_backup(database_url, tmp_path / "backup")
    await restore_backup(empty_database_url, tmp_path / "backup")
    assert dump_schema(empty_database_url) == dump_schema(database_url)
    again = await save_backup(empty_database_url, tmp_path / "again")
    assert (again.tables, again.figures) == (manifest.tables, manifest.figures)
    assert manifest.tables["subscribers"] == 1
    assert manifest.figures["entries: sum of amounts"] == "10000"
    sequence = "SELECT last_value FROM process_slots"
    rows = await fetch_rows(empty_database_url, sequence)
    expected = await fetch_rows(database_url, sequence)
    assert rows == expected
    assert await migrate(empty_database_url) == []


async def test_restore_ends_sessions_and_does_not_reuse_delivery_ids(
    harness: Harness, database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    await harness.create_admin()
    await save_backup(database_url, tmp_path / "backup")
    before = first_id_at(system_clock())
    await restore_backup(empty_database_url, tmp_path / "backup")
    assert await fetch_rows(empty_database_url, "SELECT FROM sessions WHERE ended_at IS NULL") == []
    assert await fetch_rows(empty_database_url, "SELECT FROM refresh_tokens") == []
    # Receivers deduplicate by delivery ID, so an ID issued after the backup must not be reused.
    [(number,)] = await fetch_rows(empty_database_url, "SELECT nextval('deliveries_id_seq')")
    assert isinstance(number, int)
    assert number > before


async def test_restore_into_a_non_empty_database_changes_nothing(
    database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    await save_backup(database_url, tmp_path / "backup")
    await fetch_rows(empty_database_url, "CREATE TABLE accounts (owner text)")
    await fetch_rows(empty_database_url, "INSERT INTO accounts VALUES ('existing')")
    with pytest.raises(StoreError, match=r"not empty: it contains accounts \(1 in total\)$"):
        await restore_backup(empty_database_url, tmp_path / "backup")
    assert await fetch_rows(empty_database_url, "SELECT * FROM accounts") == [("existing",)]
    rows = await fetch_rows(
        empty_database_url, "SELECT FROM pg_tables WHERE schemaname = 'messenger'"
    )
    assert rows == []


async def test_only_one_of_several_concurrent_restores_succeeds(
    database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    await save_backup(database_url, tmp_path / "backup")
    results = await asyncio.gather(
        *(restore_backup(empty_database_url, tmp_path / "backup") for _ in range(3)),
        return_exceptions=True,
    )
    errors = [result for result in results if result != []]
    assert len(errors) == 2
    assert all("the database is not empty" in str(error) for error in errors)


async def test_database_without_tables_cannot_be_backed_up(
    empty_database_url: str, tmp_path: Path
) -> None:
    with pytest.raises(StoreError, match="nothing to back up"):
        await save_backup(empty_database_url, tmp_path / "backup")
    assert list_files(tmp_path) == []


async def test_names_in_a_backup_are_never_executed(
    database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    name = "x (a int); CREATE TABLE made (a int); --"
    await fetch_rows(database_url, f'CREATE TABLE "{name}" (a int)')
    await save_backup(database_url, tmp_path / "backup")
    assert await restore_backup(empty_database_url, tmp_path / "backup") == [name]
    made = "SELECT FROM pg_tables WHERE tablename = 'made' OR tablename LIKE 'x %'"
    assert await fetch_rows(empty_database_url, made) == []


async def test_restore_that_differs_from_the_manifest_is_rolled_back(
    database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    await fetch_rows(database_url, "INSERT INTO login_failures VALUES ('ada', 'here', '{}')")
    manifest = await save_backup(database_url, tmp_path / "backup")
    for changes, error in [
        (
            {"tables": manifest.tables | {"login_failures": 2}},
            "login_failures: rows: restored '1', but the backup has '2'",
        ),
        ({"tables": {"login_failures": 1}}, r"the backup is missing account_rules, .* in total\)"),
        ({"figures": {"audit log: head": "0 it's"}}, "audit log: head: restored '0 0000"),
        (
            # Migration 32 adds columns.
            {"migrations": {k: v for k, v in manifest.migrations.items() if k < "0032"}},
            "the columns of .* do not match",
        ),
    ]:
        with (tmp_path / "backup").open("rb") as file, pytest.raises(StoreError, match=error):
            reader = BackupReader(file, VAULT, ignore_progress)
            reader.manifest = msgspec.structs.replace(manifest, **changes)
            await restore.restore_backup(empty_database_url, reader, ignore_progress)
        assert await is_empty(empty_database_url)
    await restore_backup(empty_database_url, tmp_path / "backup")


async def test_backup_that_does_not_match_the_settings_is_rejected(database_url: str) -> None:
    manifest, _ = await create_backup(database_url, io.BytesIO(), VAULT, ignore_progress)
    settings: dict[str, Any] = {"key_ids": ["ef56", "ab12"], "currency": "SLE"}
    installed = msgspec.structs.replace(manifest, secret_fingerprint="ab12", currency="SLE")
    restore.require_restorable(manifest, **settings)
    restore.require_restorable(installed, **settings)
    for other_settings, error in [
        (settings | {"key_ids": ["cd34"]}, "secret key 'ab12', but the configured key"),
        (settings | {"currency": "EUR"}, "currency is 'SLE'"),
    ]:
        with pytest.raises(StoreError, match=error):
            restore.require_restorable(installed, **other_settings)
    newer = msgspec.structs.replace(manifest, migrations=manifest.migrations | {"9999.sql": "x"})
    with pytest.raises(StoreError, match=r"newer than this version of Tapgate: it has 9999\.sql"):
        restore.require_restorable(newer, **settings)
    with pytest.raises(StoreError, match="this machine's clock is behind"):
        early = manifest.moment - timedelta(seconds=1)
        restore.require_restorable(manifest, **settings, clock=lambda: early)


async def test_canceled_restore_is_either_complete_or_leaves_nothing(
    harness: Harness, database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    await harness.create_subscriber(balance="100.00")
    await save_backup(database_url, tmp_path / "backup")
    for milliseconds in (1, 30, 60, 120, 240):
        task = asyncio.create_task(restore_backup(empty_database_url, tmp_path / "backup"))
        await asyncio.sleep(milliseconds / 1000)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            await wait_until_idle(empty_database_url)
            assert await is_empty(empty_database_url)
        else:
            break  # the cancellation came too late
    else:
        await restore_backup(empty_database_url, tmp_path / "backup")
    rows = await fetch_rows(
        empty_database_url, "SELECT balance FROM accounts WHERE kind = 'wallet'"
    )
    assert rows == [(10000,)]


async def test_commit_is_recognized_when_its_response_is_lost(
    database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    await save_backup(database_url, tmp_path / "backup")

    async def drop_commit_response(response: bytes) -> bool:
        return b"COMMIT\x00" in response

    async with run_proxy(empty_database_url, hook=drop_commit_response) as port:
        await restore_backup(
            build_tcp_url(empty_database_url, "127.0.0.1", port), tmp_path / "backup"
        )
    assert not await is_empty(empty_database_url)
    with pytest.raises(StoreError, match="nothing was restored: the database is not empty"):
        await restore_backup(empty_database_url, tmp_path / "backup")


async def test_restore_cannot_be_canceled_after_the_commit(
    database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    """Otherwise the canceled restore would report that nothing was restored."""
    await save_backup(database_url, tmp_path / "backup")
    committed = asyncio.Event()

    async def delay_commit_response(response: bytes) -> bool:
        if b"COMMIT\x00" in response:
            committed.set()
            await asyncio.sleep(60)
        return False

    async with run_proxy(empty_database_url, hook=delay_commit_response) as port:
        url = build_tcp_url(empty_database_url, "127.0.0.1", port)
        task = asyncio.create_task(restore_backup(url, tmp_path / "backup"))
        await committed.wait()
        task.cancel()
        await task
    assert not await is_empty(empty_database_url)


async def test_unrelated_tables_are_not_restored(
    empty_database_url: str, database_url: str, tmp_path: Path
) -> None:
    await fetch_rows(database_url, "CREATE TABLE notes (text text)")
    await fetch_rows(database_url, "INSERT INTO notes VALUES ('mine')")
    await save_backup(database_url, tmp_path / "backup")
    assert await restore_backup(empty_database_url, tmp_path / "backup") == ["notes"]
    assert await fetch_rows(empty_database_url, "SELECT to_regclass('notes')") == [(None,)]


async def test_manually_altered_tables_are_rejected(
    database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    await fetch_rows(database_url, "ALTER TABLE cards ADD COLUMN note text")
    await save_backup(database_url, tmp_path / "backup")
    with pytest.raises(StoreError, match="the columns of cards do not match Tapgate's table"):
        await restore_backup(empty_database_url, tmp_path / "backup")
    assert await is_empty(empty_database_url)


async def test_database_with_another_secret_key_is_not_backed_up(
    database_url: str, tmp_path: Path
) -> None:
    """Such a backup could not be restored, as the file and its contents need different keys."""
    await fetch_rows(
        database_url, "INSERT INTO installation VALUES ('secret_fingerprint', 'ab12cd34')"
    )
    with pytest.raises(StoreError, match="the database uses secret key ab12cd34"):
        await save_backup(database_url, tmp_path / "backup")
    assert list_files(tmp_path) == []


async def test_terminated_session_fails_the_backup_or_restore_and_leaves_nothing(
    postgres: str, database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    """One session is terminated during the backup and one during the restore.

    Each session first waits for a lock, because it could otherwise end before it is terminated.
    """
    await save_backup(database_url, tmp_path / "backup")

    async def terminate_sessions(name: str) -> None:
        while not await fetch_rows(
            postgres,
            f"""SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = '{name}' AND wait_event_type = 'Lock'""",
        ):
            await asyncio.sleep(0.01)

    async with hold_lock(database_url, "DROP SEQUENCE process_slots"):
        termination = asyncio.create_task(terminate_sessions(get_database_name(database_url)))
        with pytest.raises(StoreError, match="the database cannot be backed up: ") as raised:
            await save_backup(database_url, tmp_path / "other")
        await termination
    assert "\n" not in str(raised.value)
    assert list_files(tmp_path) == ["backup"]
    async with hold_lock(empty_database_url, f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK_KEY})"):
        termination = asyncio.create_task(terminate_sessions(get_database_name(empty_database_url)))
        with pytest.raises(StoreError, match="nothing was restored: "):
            await restore_backup(empty_database_url, tmp_path / "backup")
        await termination
    assert await is_empty(empty_database_url)


@contextlib.asynccontextmanager
async def hold_lock(url: str, sql: str) -> AsyncIterator[None]:
    """Hold a statement's locks until the context ends."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f"BEGIN; {sql}")
        yield
    finally:
        await connection.close()
