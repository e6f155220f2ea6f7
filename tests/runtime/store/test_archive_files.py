"""Archive files are written and read without the time limits for requests and jobs."""

from pathlib import Path

import pytest

from builders.archive import VAULT
from tapgate.runtime.store import database as database_module
from tapgate.runtime.store.archive_files import (
    ArchiveManifest,
    export_tables,
    get_file_name,
    load_table,
    read_rows,
)
from tapgate.runtime.store.backup_file import open_new_file
from tapgate.runtime.store.connection_settings import LONG_JOB_LIMITS
from tapgate.runtime.store.database import Database

_LIMIT_SECONDS = 1.0
#: Longer than the server and the client allow a job's statement to take.
_SLOW = "pg_sleep(2.2)"
_CREATE = f"""
    CREATE SCHEMA archive;
    CREATE VIEW archive.slow AS
        SELECT current_setting('statement_timeout') AS value FROM {_SLOW};
    CREATE TABLE archive.loaded (value text);
    CREATE FUNCTION archive.wait() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM {_SLOW}; RETURN NULL; END $$;
    CREATE TRIGGER wait BEFORE INSERT ON archive.loaded EXECUTE FUNCTION archive.wait()"""


async def test_export_and_load_may_take_longer_than_any_other_statement(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await database.execute(_CREATE)
    monkeypatch.setattr(database_module, "DATABASE_TIMEOUT_SECONDS", _LIMIT_SECONDS)
    limits = LONG_JOB_LIMITS._replace(statement=_LIMIT_SECONDS)
    monkeypatch.setattr(database_module, "LONG_JOB_LIMITS", limits)
    async with database.dedicated_connection() as connection:
        manifest = await export_tables(
            connection,
            VAULT,
            tmp_path,
            ArchiveManifest("2026_03", 0, 1, {}),
            {"slow": "value"},
            lambda name, size: None,
        )
        path = tmp_path / get_file_name("slow")
        assert b"".join(read_rows(path, VAULT)) == b"value\n0\n"
        async with connection.transaction():
            await load_table(connection, VAULT, path, "loaded", manifest.files[path.name])
        assert await connection.fetchval("SELECT value FROM archive.loaded") == "0"
        assert await connection.fetchval("SHOW statement_timeout") == "1s"


async def test_statement_of_a_job_may_take_longer_than_a_request(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "DATABASE_TIMEOUT_SECONDS", _LIMIT_SECONDS)
    async with database.dedicated_connection() as connection:
        assert await connection.fetchval(f"SELECT 1 FROM {_SLOW}") == 1


@pytest.mark.parametrize("error", [TimeoutError(), ConnectionResetError(104, "reset")])
def test_connection_failure_is_not_reported_as_a_file_failure(
    tmp_path: Path, error: OSError
) -> None:
    with (
        pytest.raises(type(error)),
        open_new_file(tmp_path / "file", replace=True) as file,
    ):
        file.write(b"a row")
        raise error
    assert list(tmp_path.iterdir()) == []
