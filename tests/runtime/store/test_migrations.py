"""Migrations run once, in order and atomically; mismatches with the database are rejected."""

import asyncio
from pathlib import Path

import asyncpg
import pytest

from cases import each
from databases import build_database_url
from tapgate.runtime.store import StoreError
from tapgate.runtime.store.migrate import migrate, read_plan
from tapgate.runtime.store.migration_plan import AppliedMigration, Migration, build_plan

_FILES = ("0001_first.sql", "0002_second.sql")


@pytest.fixture
def migrations_dir(tmp_path: Path) -> Path:
    (tmp_path / _FILES[0]).write_text("CREATE TABLE first (n int); INSERT INTO first VALUES (1);")
    (tmp_path / _FILES[1]).write_text("ALTER TABLE first ADD COLUMN second int;")
    return tmp_path


async def test_migrate_applies_all_migrations_in_order(empty_database_url: str) -> None:
    applied = await migrate(empty_database_url)
    assert applied[0] == "0001_ledger.sql"
    assert applied == sorted(applied)
    assert await migrate(empty_database_url) == []


async def test_concurrent_migrations_apply_each_file_once(
    empty_database_url: str, migrations_dir: Path
) -> None:
    results = await asyncio.gather(*(migrate(empty_database_url, migrations_dir) for _ in range(8)))
    assert sorted(results, key=len) == [[]] * 7 + [list(_FILES)]
    assert await fetch_rows(empty_database_url, "SELECT n, second FROM first") == [(1, None)]


async def test_failed_migration_is_rolled_back(
    empty_database_url: str, migrations_dir: Path
) -> None:
    (migrations_dir / "0003_third.sql").write_text("CREATE TABLE third (); SELECT nonsense;")
    with pytest.raises(StoreError, match=r"0003_third\.sql cannot be applied"):
        await migrate(empty_database_url, migrations_dir)
    assert await fetch_rows(empty_database_url, "SELECT to_regclass('third')") == [(None,)]
    (migrations_dir / "0003_third.sql").write_text("CREATE TABLE third ();")
    assert await migrate(empty_database_url, migrations_dir) == ["0003_third.sql"]


@pytest.mark.parametrize(
    ("table", "nodes"),
    [
        ("", []),
        (
            """CREATE TABLE nodes
                   (role text, host text, port int, version text, newest_migration text);
               INSERT INTO nodes VALUES ('gateway', 'a.example', 8000, '1.0.0');""",
            ["gateway a.example:8000 (1.0.0)"],
        ),
    ],
)
async def test_plan_lists_nodes_that_registered_before_they_stored_their_migrations(
    empty_database_url: str, migrations_dir: Path, table: str, nodes: list[str]
) -> None:
    (migrations_dir / "0003_nodes.sql").write_text(f"SELECT 1; {table}")
    await migrate(empty_database_url, migrations_dir)
    contract = "-- migration: contract, requires 0003\nALTER TABLE first DROP COLUMN second;"
    (migrations_dir / "0004_contract.sql").write_text(contract)
    assert (await read_plan(empty_database_url, migrations_dir))[1] == {"0004_contract.sql": nodes}


async def test_statement_timeout_in_the_url_does_not_abort_a_migration(
    empty_database_url: str, migrations_dir: Path
) -> None:
    (migrations_dir / "0003_third.sql").write_text("SELECT pg_sleep(1.2);")
    separator = "&" if "?" in empty_database_url else "?"
    url = f"{empty_database_url}{separator}options=-c%20statement_timeout%3D1000"
    assert (await migrate(url, migrations_dir))[-1] == "0003_third.sql"


async def test_modified_migration_file_is_rejected(
    empty_database_url: str, migrations_dir: Path
) -> None:
    await migrate(empty_database_url, migrations_dir)
    (migrations_dir / _FILES[1]).write_text("ALTER TABLE first ADD COLUMN second bigint;")
    with pytest.raises(StoreError, match=r"0002_second\.sql was changed after it was applied"):
        await migrate(empty_database_url, migrations_dir)


async def test_role_without_create_privilege_is_reported_in_one_line(
    empty_database_url: str,
) -> None:
    connection = await asyncpg.connect(empty_database_url)
    await connection.execute("CREATE ROLE powerless LOGIN")
    try:
        with pytest.raises(StoreError, match="cannot be migrated: permission denied") as raised:
            await migrate(empty_database_url.replace("//postgres@", "//powerless@"))
        assert "\n" not in str(raised.value)
    finally:
        await connection.execute("DROP ROLE powerless")
        await connection.close()


def test_migration_that_sorts_before_an_applied_one_is_rejected() -> None:
    first, late, second = (Migration(name, "SELECT 1") for name in ("0001", "0001b", "0002"))
    applied = {item.name: AppliedMigration(item.sha256) for item in (first, second)}
    with pytest.raises(StoreError, match="0001b comes before 0002"):
        build_plan([first, late, second], applied)
    del applied[second.name]
    assert build_plan([first, late, second], applied).pending == [late, second]


@each("url", ["postgresql://127.0.0.1:1/x", "postgresql:///x?host=/nowhere"])
async def test_unreachable_database_is_reported_in_one_line(url: str) -> None:
    with pytest.raises(StoreError, match="the database cannot be reached") as raised:
        await migrate(url)
    assert "\n" not in str(raised.value)


async def fetch_rows(url: str, sql: str) -> list[tuple[object, ...]]:
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(sql)]
    finally:
        await connection.close()


async def test_database_with_another_encoding_is_rejected(postgres: str) -> None:
    connection = await asyncpg.connect(postgres)
    try:
        await connection.execute(
            "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'"
            " TEMPLATE template0"
        )
        with pytest.raises(StoreError, match="the database's encoding is LATIN1: create it with"):
            await migrate(build_database_url("latin", postgres))
        await connection.execute("DROP DATABASE latin")
    finally:
        await connection.close()
