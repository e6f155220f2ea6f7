"""Sealed values of every column move to the newest key, also while they change."""

import asyncio
from typing import Any

import asyncpg
import pytest

from tapgate.cli.rekey import sealed_values
from tapgate.cli.rekey.columns import SEALED_COLUMNS, SealedColumn, build_row_context
from tapgate.core.vault import Vault
from tapgate.runtime.store.migrate import migrate

OLD, BOTH, NEW = Vault("k" * 32), Vault("1:" + "j" * 32 + "," + "k" * 32), Vault("j" * 32)
ROWS = 3

#: A row then needs only its key and the sealed value.
RELAX_CONSTRAINTS = """
    DO $$ DECLARE item record; BEGIN
        FOR item IN SELECT conrelid::regclass AS name, conname FROM pg_constraint
                    WHERE contype IN ('c', 'f') AND conrelid <> 0 AND conislocal LOOP
            EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I CASCADE', item.name, item.conname);
        END LOOP;
        FOR item IN SELECT attrelid::regclass AS name, attname FROM pg_attribute
                    JOIN pg_class ON pg_class.oid = attrelid
                    JOIN pg_namespace ON pg_namespace.oid = relnamespace
                    WHERE nspname IN ('public', 'messenger') AND relkind = 'r' AND attnum > 0
                      AND attnotnull LOOP
            BEGIN
                EXECUTE format('ALTER TABLE %s ALTER %I DROP NOT NULL', item.name, item.attname);
            EXCEPTION WHEN OTHERS THEN NULL;
            END;
        END LOOP;
    END $$"""


@pytest.fixture
async def connection(empty_database_url: str) -> Any:
    await migrate(empty_database_url)
    connection = await asyncpg.connect(empty_database_url)
    await connection.execute(RELAX_CONSTRAINTS)
    yield connection
    await connection.close()


def build_key(column: SealedColumn, number: int) -> dict[str, Any]:
    values = {"address": f"{number}", "state_hash": bytes([number]), "key_id": f"{number}"}
    return {name: values.get(name, number) for name in column.key}


async def insert_sealed(connection: Any, column: SealedColumn, vault: Vault) -> None:
    for number in range(1, ROWS + 1):
        key = build_key(column, number)
        sealed = vault.seal(column.name.encode(), build_row_context(column, key))
        names = ", ".join(key)
        values = ", ".join(f"${n}" for n in range(2, 2 + len(key)))
        await connection.execute(
            f"""INSERT INTO {column.table} ({names}, {column.column}) VALUES ({values}, $1)
                ON CONFLICT ({names}) DO UPDATE SET {column.column} = excluded.{column.column}""",
            sealed,
            *key.values(),
        )


async def read_all(connection: Any, column: SealedColumn, vault: Vault) -> list[bytes]:
    rows = await connection.fetch(
        f"SELECT {', '.join(column.key)}, {column.column} AS sealed FROM {column.table}"
    )
    return [vault.open(row["sealed"], build_row_context(column, row)) for row in rows]


async def ignore(count: int) -> None:
    """Report no progress."""


async def test_values_of_all_columns_open_with_the_new_key_alone(connection: Any) -> None:
    for column in SEALED_COLUMNS:
        await insert_sealed(connection, column, OLD)
        assert await sealed_values.count_by_key(connection, column) == {OLD.key_id: ROWS}
    moved: list[int] = []

    async def report(count: int) -> None:
        moved.append(count)

    assert await sealed_values.reseal_all(connection, BOTH, report) == []
    assert sum(moved) == ROWS * len(SEALED_COLUMNS)
    for column in SEALED_COLUMNS:
        assert await read_all(connection, column, NEW) == [column.name.encode()] * ROWS


async def test_interrupted_run_is_continued(connection: Any) -> None:
    for column in SEALED_COLUMNS:
        await insert_sealed(connection, column, OLD)
    total = ROWS * len(SEALED_COLUMNS)
    moved = 0

    async def stop_halfway(count: int) -> None:
        nonlocal moved
        moved += count
        if moved >= total // 2:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await sealed_values.reseal_all(connection, BOTH, stop_halfway)
    continued: list[int] = []

    async def report(count: int) -> None:
        continued.append(count)

    assert await sealed_values.reseal_all(connection, BOTH, report) == []
    assert moved + sum(continued) == total
    for column in SEALED_COLUMNS:
        assert await read_all(connection, column, NEW) == [column.name.encode()] * ROWS


async def test_value_that_was_changed_in_between_is_kept(
    connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each value is replaced after it was read and before it is written."""
    column = SEALED_COLUMNS[0]
    await insert_sealed(connection, column, OLD)
    replace = sealed_values._replace

    async def change_and_replace(connection: Any, column: Any, row: Any, sealed: bytes) -> bool:
        changed = BOTH.seal(b"changed", build_row_context(column, row))
        await connection.execute(
            f"UPDATE {column.table} SET {column.column} = $1 WHERE id = $2", changed, row["id"]
        )
        return await replace(connection, column, row, sealed)

    monkeypatch.setattr(sealed_values, "_replace", change_and_replace)
    assert await sealed_values.reseal_all(connection, BOTH, ignore) == []
    assert await read_all(connection, column, NEW) == [b"changed"] * ROWS


async def test_values_that_cannot_be_opened_are_reported_and_kept(connection: Any) -> None:
    column = SEALED_COLUMNS[0]
    stranger = Vault("s" * 32)
    await insert_sealed(connection, column, stranger)
    assert await sealed_values.reseal_all(connection, BOTH, ignore) == [f"{ROWS} in {column.name}"]
    assert await read_all(connection, column, stranger) == [column.name.encode()] * ROWS
