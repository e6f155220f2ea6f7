"""Backups of older schemas can be restored and migrated without losing rows."""

import io
from pathlib import Path

import pytest

from store.test_backup import dump_schema, ignore_progress
from store.test_schema_upgrade import (
    _MIGRATION_NAMES,
    _SECRET_KEY,
    build_schema,
    connect,
    dump_rows,
    list_columns,
    verify_ledger,
)
from tapgate.store import restore
from tapgate.store.backup import create_backup
from tapgate.store.backup_file import BackupReader
from tapgate.store.migrate import migrate
from tapgate.vault import Vault

#: A restore changes or deletes rows of these tables to end sessions, codes and links.
_CLEARED_TABLES = {
    "public.sessions",
    "public.refresh_tokens",
    "public.one_time_codes",
    "public.restricted_access",
    "public.statements",
    "messenger.codes",
}


@pytest.mark.parametrize(
    "last",
    [_MIGRATION_NAMES[3], _MIGRATION_NAMES[len(_MIGRATION_NAMES) // 2]],
)
async def test_backup_of_an_older_schema_is_restored_and_migrated(
    last: str,
    empty_database_url: str,
    other_empty_database_url: str,
    database_url: str,
    tmp_path: Path,
) -> None:
    await build_schema(empty_database_url, last, tmp_path)
    vault, file = Vault(_SECRET_KEY), io.BytesIO()
    await create_backup(empty_database_url, file, vault, ignore_progress)
    await restore.restore_backup(
        other_empty_database_url, BackupReader(file, vault, ignore_progress), ignore_progress
    )
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
