"""Indexes are taken away while millions of rows come in, and made again as they were."""

from collections.abc import Sequence
from typing import NamedTuple

import asyncpg


class Index(NamedTuple):
    name: str
    definition: str


async def drop_indexes(connection: asyncpg.Connection, tables: Sequence[str]) -> list[Index]:
    """All but those that are a table's constraints."""
    rows = await connection.fetch(
        """SELECT indexname, indexdef FROM pg_indexes
           WHERE schemaname = current_schema() AND tablename = ANY ($1::text[])
             AND indexname NOT IN (SELECT conname FROM pg_constraint)
           ORDER BY indexname""",
        list(tables),
    )
    found = [Index(*row) for row in rows]
    for index in found:
        await connection.execute(f"DROP INDEX {index.name}")
    return found


async def shuffle_rows(connection: asyncpg.Connection, table: str, key: str) -> None:
    """Lay a table's rows out in no order: those who pay are among all others, not beside them."""
    await connection.execute(f"CREATE INDEX scattered ON {table} (hashint8({key}))")
    await connection.execute(f"CLUSTER {table} USING scattered")
    await connection.execute("DROP INDEX scattered")
