"""Drops indexes before a bulk load, and orders rows randomly."""

from collections.abc import Sequence
from typing import NamedTuple

import asyncpg


class Index(NamedTuple):
    name: str
    definition: str


async def drop_indexes(connection: asyncpg.Connection, tables: Sequence[str]) -> list[Index]:
    """Drop and return all table indexes, except those that back constraints.

    A partition's index is dropped with the table's index, and is attached by its definition.
    """
    rows = await connection.fetch(
        """SELECT c.relname, c.relispartition,
                  pg_get_indexdef(indexrelid) || CASE WHEN c.relispartition THEN
                      format('; ALTER INDEX %s ATTACH PARTITION %s', inhparent::regclass,
                             indexrelid::regclass) ELSE '' END AS definition
           FROM pg_index JOIN pg_class c ON c.oid = indexrelid
           LEFT JOIN pg_inherits ON inhrelid = indexrelid
           WHERE coalesce((SELECT inhparent FROM pg_inherits WHERE inhrelid = indrelid), indrelid)
                     ::regclass::text = ANY ($1::text[])
             AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
           ORDER BY c.relispartition, c.relname""",
        list(tables),
    )
    for row in rows:
        if not row["relispartition"]:
            await connection.execute(f"DROP INDEX {row['relname']}")
    return [Index(row["relname"], row["definition"]) for row in rows]


async def shuffle_rows(connection: asyncpg.Connection, table: str, key: str) -> None:
    """Store a table's rows in hash order of `key`, which spreads active payers over all pages."""
    await connection.execute(f"CREATE INDEX scattered ON {table} (hashint8({key}))")
    await connection.execute(f"CLUSTER {table} USING scattered")
    await connection.execute("DROP INDEX scattered")
