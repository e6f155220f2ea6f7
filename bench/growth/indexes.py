"""Dropping of indexes before a bulk load, and random ordering of rows."""

from collections.abc import Sequence
from typing import NamedTuple

import asyncpg


class Index(NamedTuple):
    name: str
    definition: str


async def drop_indexes(connection: asyncpg.Connection, tables: Sequence[str]) -> list[Index]:
    """Drop and return all indexes of the tables, except those that back constraints."""
    rows = await connection.fetch(
        """SELECT indexname, indexdef FROM pg_indexes
           WHERE schemaname = current_schema() AND tablename = ANY ($1::text[])
             AND indexname NOT IN (SELECT conname FROM pg_constraint)
           ORDER BY indexname""",
        list(tables),
    )
    indexes = [Index(*row) for row in rows]
    for index in indexes:
        await connection.execute(f"DROP INDEX {index.name}")
    return indexes


async def shuffle_rows(connection: asyncpg.Connection, table: str, key: str) -> None:
    """Store a table's rows in hash order of `key`, which spreads active payers over all pages."""
    await connection.execute(f"CREATE INDEX scattered ON {table} (hashint8({key}))")
    await connection.execute(f"CLUSTER {table} USING scattered")
    await connection.execute("DROP INDEX scattered")
