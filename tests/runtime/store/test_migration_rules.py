"""Rules for migrations: an expand migration breaks no older release, and none locks for long."""

import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import asyncpg
import pytest

import tapgate
from cases import each
from databases import SELECT_TABLES_SQL
from runtime.store.schema_changes import Catalog, list_incompatibilities, list_long_locks
from tapgate.runtime.store.migrate import migrate
from tapgate.runtime.store.migration_plan import (
    FIRST_CLASSIFIED,
    MIGRATIONS_DIR,
    Migration,
    load_migrations,
)

_CONCURRENT_STATEMENT = re.compile(
    r"(-- .*\n)*(DROP INDEX CONCURRENTLY IF EXISTS|CREATE (UNIQUE )?INDEX CONCURRENTLY) \w+"
)


async def find_problems(
    connection: asyncpg.Connection, migration: Migration
) -> tuple[list[str], list[str]]:
    """Apply a migration in the current transaction; return what breaks and what locks for long."""
    before = await Catalog.read(connection)
    await connection.execute(migration.sql.replace(" CONCURRENTLY", ""))
    after = await Catalog.read(connection)
    broken = [] if migration.is_contract else list_incompatibilities(before, after)
    return broken, [] if migration.is_concurrent else list_long_locks(before, after)


def test_each_migration_has_its_own_number() -> None:
    numbers = [migration.number for migration in load_migrations()]
    assert len(numbers) == len(set(numbers))


async def test_migrations_follow_the_rules(empty_database_url: str, tmp_path: Path) -> None:
    """Fails for a new migration that an older release or a large installation cannot bear.

    docs/upgrading.md says how to divide such a change into steps.
    """
    folder = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS_DIR, folder)
    classified = [item for item in load_migrations() if item.number >= FIRST_CLASSIFIED]
    for migration in classified:
        (folder / migration.name).unlink()
    await migrate(empty_database_url, folder)
    connection = await asyncpg.connect(empty_database_url)
    try:
        for migration in classified:
            async with connection.transaction():
                problems = await find_problems(connection, migration)
                assert problems == ([], []), migration.name
            if migration.is_concurrent:
                for statement in filter(str.strip, migration.sql.split(";\n")):
                    assert _CONCURRENT_STATEMENT.match(statement), statement
    finally:
        await connection.close()


_BREAKING = {
    "ALTER TABLE cards DROP COLUMN status": "cards.status is missing",
    "ALTER TABLE cards RENAME status TO state": "cards.status is missing",
    "ALTER TABLE cards RENAME TO payment_cards": "cards is missing",
    "DROP TABLE messenger.codes": "messenger.codes is missing",
    "DROP SEQUENCE process_slots": "process_slots is missing",
    "DROP FUNCTION refuse_change CASCADE": "refuse_change() is missing",
    "ALTER TABLE cards ADD color text NOT NULL": "cards.color must be set by every INSERT",
    "ALTER TABLE transactions ALTER card_serial SET NOT NULL":
        "transactions.card_serial must not be null any more",
    "ALTER TABLE entries ALTER amount TYPE numeric":
        "entries.amount changes its type from bigint to numeric",
    "ALTER TABLE accounts ALTER balance DROP DEFAULT": "accounts.balance loses its default",
    "ALTER TABLE cards ADD CONSTRAINT short CHECK (length(serial) < 9)":
        "short restricts existing columns of cards",
    "ALTER TABLE cards ADD CONSTRAINT short CHECK (length(serial) < 9) NOT VALID":
        "short restricts existing columns of cards",
    "CREATE UNIQUE INDEX one_card ON cards (subscriber_id)":
        "one_card restricts existing columns of cards",
    "ALTER TABLE agents ADD FOREIGN KEY (id) REFERENCES subscribers NOT VALID":
        "agents_id_fkey restricts existing columns of agents",
    "DO $$ BEGIN EXECUTE 'ALTER TABLE cards DROP COLUMN status'; END $$":
        "cards.status is missing",
}  # fmt: skip
_LOCKING = {
    "CREATE INDEX by_status ON cards (status)": "cards is read completely",
    "ALTER TABLE cards ADD color text DEFAULT gen_random_uuid()": "cards is rewritten",
    "ALTER TABLE cards ADD color text CHECK (color <> '')": "cards is read completely",
    "UPDATE cards SET status = status": "cards is read completely",
    "ALTER TABLE entries ADD CHECK (amount < 9)": "entries_initial is read completely",
}
_HARMLESS = [
    "ALTER TABLE cards ADD color text DEFAULT 'red' NOT NULL",
    "ALTER TABLE transactions ADD color text",
    "ALTER TABLE transactions ALTER amount DROP NOT NULL",
    "CREATE TABLE colors (id bigint PRIMARY KEY, name text NOT NULL UNIQUE CHECK (name <> ''));"
    "CREATE INDEX colors_by_name ON colors (name)",
    "CREATE VIEW red_cards AS SELECT id FROM cards",
    "UPDATE account_rules SET max_balance = max_balance",
    "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS"
    " $$ BEGIN RAISE 'no'; END $$",
]


Problems = tuple[list[str], list[str]]
FindProblems = Callable[[str], Awaitable[Problems]]


@pytest.fixture
async def problems_of(database_url: str) -> AsyncIterator[FindProblems]:
    connection = await asyncpg.connect(database_url)

    async def find(sql: str) -> Problems:
        transaction = connection.transaction()
        await transaction.start()
        try:
            return await find_problems(connection, Migration("0099_example.sql", sql))
        finally:
            await transaction.rollback()

    yield find
    await connection.close()


@each("sql", _BREAKING)
async def test_statement_that_breaks_the_previous_release_is_found(
    sql: str, problems_of: FindProblems
) -> None:
    assert _BREAKING[sql] in (await problems_of(sql))[0]


@each("sql", _LOCKING)
async def test_statement_that_locks_a_large_table_is_found(
    sql: str, problems_of: FindProblems
) -> None:
    assert _LOCKING[sql] in (await problems_of(sql))[1]


@each("sql", _HARMLESS)
async def test_harmless_statement_is_accepted(sql: str, problems_of: FindProblems) -> None:
    assert await problems_of(sql) == ([], [])


#: The asterisk of these queries is in a subquery.
_MAY_SELECT_ALL = frozenset(
    {"events/webhooks/delivery_queue.py", "ledger/verification/invariants.py"}
)


async def test_queries_name_the_columns_of_a_table(database_url: str) -> None:
    """A column that the next release adds must not reach code that does not know it."""
    connection = await asyncpg.connect(database_url)
    try:
        tables = {row[0] for row in await connection.fetch(SELECT_TABLES_SQL)}
    finally:
        await connection.close()
    source = Path(tapgate.__file__).parent
    found = {
        str(file.relative_to(source))
        for file in source.rglob("*.py")
        for match in re.finditer(r"SELECT (?:\w+\.)?\* FROM ([\w.]+)", file.read_text())
        if match[1] in tables
    }
    assert found == _MAY_SELECT_ALL
