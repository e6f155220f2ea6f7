"""Test databases: which of them are used again."""

import asyncpg
import pytest

from databases import ScratchDatabases, build_database_url

_CHANGES = [
    "ALTER TABLE cards ADD note text",
    "ALTER TABLE cards ALTER serial SET DEFAULT 'x'",
    "ALTER TABLE cards ADD CONSTRAINT long CHECK (length(serial) > 1)",
    "DROP INDEX cards_search",
    "CREATE VIEW views AS SELECT 1",
    "CREATE TYPE color AS ENUM ('red', 'green')",
    "CREATE TYPE point AS (x int, y int)",
    "CREATE DOMAIN color AS text",
    "CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "DROP TRIGGER {trigger}",
    "ALTER DATABASE {database} SET work_mem = '1MB'",
]


async def run_and_release(databases: ScratchDatabases, url: str, sql: str) -> tuple[str, str]:
    """Run SQL in a database and return the database and the one that the next test gets."""
    name = await databases.acquire()
    connection = await asyncpg.connect(build_database_url(name, url))
    try:
        trigger = await connection.fetchval(
            "SELECT format('%I ON %s', tgname, tgrelid::regclass) FROM pg_trigger"
            " WHERE NOT tgisinternal AND tgparentid = 0 LIMIT 1"
        )
        await connection.execute(sql.format(trigger=trigger, database=name))
    finally:
        await connection.close()
    await databases.release(name)
    following = await databases.acquire()
    await databases.release(following)
    return name, following


@pytest.mark.parametrize("sql", _CHANGES)
async def test_database_with_changed_schema_is_not_used_again(
    sql: str, scratch_databases: ScratchDatabases, postgres: str
) -> None:
    name, following = await run_and_release(scratch_databases, postgres, sql)
    assert following != name


async def test_database_with_changed_rows_is_emptied_and_used_again(
    scratch_databases: ScratchDatabases, postgres: str
) -> None:
    sql = "CREATE TEMP TABLE ids AS SELECT 1; INSERT INTO installation VALUES ('a', '1')"
    name, following = await run_and_release(scratch_databases, postgres, sql)
    assert following == name
