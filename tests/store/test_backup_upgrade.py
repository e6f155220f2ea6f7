"""Backups of every age: all rows of all tables come back, and are migrated from there."""

import io
from pathlib import Path

import pytest

from store.test_backup import nothing, schema
from store.test_upgrade import _NAMES, _SECRET_KEY, columns_of, contents, fill, proved, up_to
from tapgate.store import restore
from tapgate.store.backup import create_backup
from tapgate.store.backup_file import BackupReader
from tapgate.store.migrate import migrate
from tapgate.vault import Vault

#: A restore ends what is in them.
_ENDED = {
    "public.sessions",
    "public.refresh_tokens",
    "public.one_time_codes",
    "public.restricted_access",
    "public.statements",
    "messenger.codes",
}


@pytest.mark.parametrize("last", [_NAMES[3], _NAMES[len(_NAMES) // 2], _NAMES[-1]])
async def test_a_backup_of_an_older_schema_comes_back(
    last: str, empty_url: str, other_empty_url: str, database_url: str, tmp_path: Path
) -> None:
    for name in _NAMES[: _NAMES.index(last) + 1]:
        await migrate(empty_url, up_to(name, tmp_path))
        await fill(empty_url, name)
    vault, file = Vault(_SECRET_KEY), io.BytesIO()
    await create_backup(empty_url, file, vault, nothing)
    await restore.restore_backup(other_empty_url, BackupReader(file, vault, nothing), nothing)
    assert schema(other_empty_url) == schema(empty_url)
    columns = await columns_of(empty_url)
    kept = {table: names for table, names in columns.items() if table not in _ENDED}
    assert await contents(other_empty_url, kept) == await contents(empty_url, kept)
    links = {table: names for table, names in columns.items() if table == "public.statements"}
    assert not any((await contents(other_empty_url, links)).values())
    await migrate(other_empty_url)
    assert schema(other_empty_url) == schema(database_url)
    assert (await proved(other_empty_url)).is_valid
