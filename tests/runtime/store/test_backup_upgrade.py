"""Backups from the last 1.x release are restored and migrated; older ones are refused."""

import io
from pathlib import Path

import msgspec
import pytest

from drivers.backups import dump_schema, ignore_progress
from drivers.schema_upgrades import (
    SECRET_KEY,
    build_schema,
    connect,
    dump_rows,
    list_columns,
    verify_ledger,
)
from tapgate.core.vault import Vault
from tapgate.runtime.store import StoreError, restore
from tapgate.runtime.store.backup import create_backup
from tapgate.runtime.store.backup_file import BackupReader
from tapgate.runtime.store.migrate import migrate
from tapgate.runtime.store.migration_plan import LAST_1X_MIGRATION

#: A restore changes or deletes rows of these tables to end sessions, codes and links.
_CLEARED_TABLES = {
    "public.sessions",
    "public.refresh_tokens",
    "public.one_time_codes",
    "public.restricted_access",
    "public.statements",
    "messenger.codes",
}


async def test_backup_of_the_last_1x_release_is_restored_and_migrated(
    empty_database_url: str,
    other_empty_database_url: str,
    database_url: str,
    tmp_path: Path,
) -> None:
    await build_schema(empty_database_url, LAST_1X_MIGRATION, tmp_path)
    vault, file = Vault(SECRET_KEY), io.BytesIO()
    await create_backup(empty_database_url, file, vault, ignore_progress)
    reader = BackupReader(file, vault, ignore_progress)
    restore.require_restorable(reader.manifest, key_ids=[vault.key_id], currency="SLE")
    await restore.restore_backup(other_empty_database_url, reader, ignore_progress)
    assert dump_schema(other_empty_database_url) == dump_schema(empty_database_url)
    async with connect(empty_database_url) as old, connect(other_empty_database_url) as restored:
        columns = await list_columns(old)
        kept_columns = {
            table: names for table, names in columns.items() if table not in _CLEARED_TABLES
        }
        assert await dump_rows(restored, kept_columns) == await dump_rows(old, kept_columns)
        statement_columns = {
            table: names for table, names in columns.items() if table == "public.statements"
        }
        assert not any((await dump_rows(restored, statement_columns)).values())
    await migrate(other_empty_database_url)
    assert dump_schema(other_empty_database_url) == dump_schema(database_url)
    assert (await verify_ledger(other_empty_database_url)).is_valid


async def test_backup_of_an_older_release_is_refused(database_url: str) -> None:
    manifest, _ = await create_backup(database_url, io.BytesIO(), Vault("key"), ignore_progress)
    older = {name: sha for name, sha in manifest.migrations.items() if name < LAST_1X_MIGRATION}
    with pytest.raises(StoreError, match=r"older than the last 1\.x release of Tapgate"):
        restore.require_restorable(
            msgspec.structs.replace(manifest, migrations=older), key_ids=[], currency="SLE"
        )
