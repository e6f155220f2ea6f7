"""Statements that are sent together with the next one, which relies on internals of asyncpg."""

from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from tapgate.runtime.store.database import Database
from tapgate.runtime.store.pipeline import begin, execute_ahead, fetch_and_commit, send_ahead
from tapgate_client.errors import ApiError

INSERT = "INSERT INTO installation VALUES ('a', '1')"


async def run_copy(tx: asyncpg.Connection) -> None:
    await tx.copy_records_to_table("installation", records=[("a", "1")])


async def run_savepoint(tx: asyncpg.Connection) -> None:
    async with tx.transaction():
        await tx.execute(INSERT)


FIRST_STATEMENTS: dict[str, Callable[[asyncpg.Connection], Awaitable[Any]]] = {
    "simple": lambda tx: tx.execute(INSERT),
    "prepared": lambda tx: tx.execute("INSERT INTO installation VALUES ($1, '1')", "a"),
    "many": lambda tx: tx.executemany("INSERT INTO installation VALUES ($1, '1')", [("a",)]),
    "fetch": lambda tx: tx.fetch(f"{INSERT} RETURNING value"),
    "copy": run_copy,
    "savepoint": run_savepoint,
}


@pytest.mark.parametrize("kind", FIRST_STATEMENTS)
async def test_first_statement_is_part_of_the_transaction(database: Database, kind: str) -> None:
    for _ in range(2):  # the second time, asyncpg has prepared the statement
        with pytest.raises(ZeroDivisionError):
            async with database.transaction() as tx:
                await FIRST_STATEMENTS[kind](tx)
                assert tx.is_in_transaction()
                _ = 1 / 0
        assert await database.fetch("SELECT * FROM installation") == []
    async with database.transaction() as tx:
        await FIRST_STATEMENTS[kind](tx)
    assert await database.fetchval("SELECT value FROM installation") == "1"


async def test_first_statement_returns_only_its_own_rows(database: Database) -> None:
    for number in range(3):
        async with database.transaction() as tx:
            assert await tx.fetch("SELECT $1::int AS n", number) == [(number,)]
            assert await tx.execute("SELECT 1") == "SELECT 1"


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT nothing", asyncpg.UndefinedColumnError),  # fails when it is prepared
        ("SELECT 1 / $1::int", asyncpg.DivisionByZeroError),
        ("SELECT pg_sleep(60 + $1::int)", asyncpg.QueryCanceledError),
    ],
)
async def test_error_of_the_first_statement_is_raised_and_rolls_back(
    database_url: str, sql: str, error: type[Exception]
) -> None:
    database = await Database.connect(f"{database_url}&statement_timeout=1s", size=1)
    arguments = [0] if "$1" in sql else []
    for _ in range(2):
        async with database.connection() as connection:
            with pytest.raises(error):
                await run_in_transaction(connection, sql, arguments)
        assert await database.fetchval("SELECT 1") == 1
    await database.close()


async def run_in_transaction(
    connection: asyncpg.Connection, sql: str, arguments: list[int]
) -> None:
    transaction = begin(connection)
    try:
        await connection.fetch(sql, *arguments)
    finally:
        assert connection.is_in_transaction()
        await transaction.rollback()
        assert not connection.is_in_transaction()


async def test_snapshot_has_the_settings_that_are_sent_ahead(database: Database) -> None:
    async with database.snapshot(timeout_seconds=7) as reader:
        send_ahead(reader, "SET LOCAL enable_seqscan = off")
        assert await reader.fetchval("SHOW transaction_isolation") == "repeatable read"
        assert await reader.fetchval("SHOW transaction_read_only") == "on"
        assert await reader.fetchval("SHOW statement_timeout") == "7s"
        assert await reader.fetchval("SHOW enable_seqscan") == "off"
        send_ahead(reader, "SET LOCAL enable_seqscan = on")
        assert await reader.fetchval("SHOW enable_seqscan") == "on"
    assert await database.fetchval("SHOW transaction_isolation") == "read committed"
    assert await database.fetchval("SHOW statement_timeout") != "7s"


async def test_snapshot_starts_with_the_first_statement(database: Database) -> None:
    async with database.snapshot() as reader:
        send_ahead(reader, "LOCK TABLE installation IN ACCESS SHARE MODE")
        await database.execute(INSERT)
        assert await reader.fetchval("SELECT count(*) FROM installation") == 1
        await database.execute("DELETE FROM installation")
        assert await reader.fetchval("SELECT count(*) FROM installation") == 1


async def test_timeout_sent_ahead_applies_to_the_next_statement(database: Database) -> None:
    with pytest.raises(ApiError) as caught:
        async with database.snapshot(timeout_seconds=0.05) as reader:
            await reader.fetch("SELECT pg_sleep(60)")
    assert isinstance(caught.value.__cause__, asyncpg.QueryCanceledError)


async def test_error_of_a_statement_sent_ahead_is_raised_by_the_next(database: Database) -> None:
    with pytest.raises(asyncpg.UndefinedTableError):
        async with database.snapshot() as reader:
            send_ahead(reader, "LOCK TABLE nothing")
            await reader.fetch("SELECT 1")
    assert await database.fetchval("SELECT 1") == 1


@pytest.mark.parametrize("is_failure", [False, True])
async def test_transaction_without_statements_leaves_the_connection_usable(
    database_url: str, *, is_failure: bool
) -> None:
    database = await Database.connect(database_url, size=1)
    try:
        async with database.transaction():
            if is_failure:
                raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    async with database.connection() as connection:
        assert not connection.is_in_transaction()
        assert await connection.fetchval("SELECT 1") == 1
    await database.close()


RETURNING = "INSERT INTO installation VALUES ($1, '1') RETURNING name, value"


async def test_last_statement_commits_and_returns_its_rows(database: Database) -> None:
    for name in ("a", "b"):  # the second time, asyncpg has prepared the statement
        async with database.transaction() as tx:
            await tx.execute("SELECT 1")
            assert await fetch_and_commit(tx, RETURNING, name) == [(name, "1")]
            assert not tx.is_in_transaction()
            assert await database.fetchval("SELECT count(*) FROM installation") == ord(name) - 96
        assert await database.fetchval("SELECT 1") == 1


async def test_first_statement_can_be_the_last(database: Database) -> None:
    async with database.transaction() as tx:
        assert await fetch_and_commit(tx, RETURNING, "a") == [("a", "1")]
    assert await database.fetchval("SELECT count(*) FROM installation") == 1


@pytest.mark.parametrize(
    ("sql", "argument", "error"),
    [
        ("SELECT nothing, $1::int", 1, asyncpg.UndefinedColumnError),  # while it is prepared
        ("SELECT 1 / $1::int", 0, asyncpg.DivisionByZeroError),  # while it is executed
        ("SELECT $1::int", "text", asyncpg.DataError),  # before it is sent
    ],
)
async def test_failing_last_statement_rolls_back(
    database_url: str, sql: str, argument: object, error: type[Exception]
) -> None:
    database = await Database.connect(database_url, size=1)
    for _ in range(2):
        with pytest.raises(error):
            async with database.transaction() as tx:
                await tx.execute(INSERT)
                await fetch_and_commit(tx, sql, argument)
        # No COMMIT is left over for another statement on the same connection.
        with pytest.raises(ZeroDivisionError):
            async with database.transaction() as tx:
                await tx.fetch(RETURNING, "b")
                _ = 1 / 0
    assert await database.fetch("SELECT * FROM installation") == []
    await database.close()


async def test_last_statement_raises_commit_errors(database: Database) -> None:
    await database.execute("CREATE TABLE parents (id int PRIMARY KEY)")
    await database.execute("""CREATE TABLE children (
        parent int REFERENCES parents DEFERRABLE INITIALLY DEFERRED)""")
    try:
        with pytest.raises(asyncpg.ForeignKeyViolationError):
            async with database.transaction() as tx:
                await fetch_and_commit(tx, "INSERT INTO children VALUES ($1)", 1)
        assert await database.fetch("SELECT * FROM children") == []
    finally:
        await database.execute("DROP TABLE children, parents")


async def test_types_are_looked_up_before_the_last_statement(database_url: str) -> None:
    """asyncpg runs other statements to look up composite types."""
    database = await Database.connect(database_url, size=1)
    entries = [(1, 0, 2, 3, 4)]
    with pytest.raises(ZeroDivisionError):
        async with database.transaction() as tx:
            await tx.execute(INSERT)
            rows = await fetch_and_commit(tx, "SELECT * FROM unnest($1::batch_entry[])", entries)
            assert rows == entries
            _ = 1 / 0  # too late
    assert await database.fetchval("SELECT count(*) FROM installation") == 1
    await database.close()


async def test_unreadable_rows_after_the_commit_are_a_lost_connection(
    database_url: str,
) -> None:
    """The caller must not run the statement again, because it was committed."""
    database = await Database.connect(database_url, size=1)

    def fail(_: str) -> None:
        raise ValueError("cannot be decoded")

    with pytest.raises(ApiError) as raised:
        async with database.transaction() as tx:
            await tx.execute("SELECT 1")
            await tx.set_type_codec("int8", schema="pg_catalog", encoder=str, decoder=fail)
            await fetch_and_commit(
                tx, "INSERT INTO installation VALUES ('a', '1') RETURNING 1::int8"
            )
    assert raised.value.status == 503
    assert await database.fetchval("SELECT count(*)::int4 FROM installation") == 1
    await database.close()


async def test_other_connections_keep_the_protocol_class(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    try:
        assert type(connection._protocol) is asyncpg.protocol.Protocol
    finally:
        await connection.close()


INSERT_ALL = "INSERT INTO installation SELECT unnest($1::text[]), array_to_string($2::text[], '|')"


async def test_statement_sent_ahead_gets_its_text_arrays(database: Database) -> None:
    texts = ["a", "", "Kɔnɛ 'x' \"y\" \\ {,}", "NULL"]
    for values in (texts, [], ["b"]):  # the second time, asyncpg has prepared the statement
        await database.execute("DELETE FROM installation")
        async with database.transaction() as tx:
            await execute_ahead(tx, INSERT_ALL, values, values[::-1])
            assert await tx.fetch("SELECT $1::int", 1) == [(1,)]
        rows = await database.fetch("SELECT name, value FROM installation")
        expected = [(value, "|".join(values[::-1])) for value in values]
        assert rows == expected


async def test_failing_statement_with_arrays_rolls_back(database: Database) -> None:
    for _ in range(2):
        with pytest.raises(asyncpg.UniqueViolationError):
            async with database.transaction() as tx:
                await execute_ahead(tx, INSERT_ALL, ["a", "a"], [])
                await fetch_and_commit(tx, RETURNING, "b")
        assert await database.fetch("SELECT * FROM installation") == []
