"""Indexes on partitioned tables, built without blocking writes.

PostgreSQL has no CREATE INDEX CONCURRENTLY for a partitioned table. The partition indexes are built
concurrently first. The table's index then only attaches them, in milliseconds.
"""

import asyncio
import re
from time import monotonic
from typing import Final

import asyncpg

from tapgate.runtime.store.partitions import LOCK_TIMEOUT, list_partitions

_CREATE_PATTERN: Final = re.compile(r"CREATE INDEX CONCURRENTLY (\w+)\s+ON (\w+)\b(.*)", re.DOTALL)
_DROP_PATTERN: Final = re.compile(r"DROP INDEX CONCURRENTLY IF EXISTS (\w+)")
_PAUSE_SECONDS: Final = 0.5
_DEADLINE_SECONDS: Final = 600.0


async def execute_for_partitions(
    connection: asyncpg.Connection, statement: str, *, is_empty: bool = False
) -> bool:
    """Execute a concurrent index statement on a partitioned table.

    Return False if it concerns another table. An index that exists is complete and is kept. In an
    empty database, which may have a transaction open, indexes are built in the ordinary way.
    """
    if match := _DROP_PATTERN.search(statement):
        return await _get_kind(connection, match[1]) == "I"
    match = _CREATE_PATTERN.search(statement)
    if match is None or await _get_kind(connection, match[2]) != "p":
        return False
    index, table, definition = match.groups()
    suffix = index.removeprefix(f"{table}_")
    for partition in await list_partitions(connection, table):
        name = f"{partition.name}_{suffix}"
        is_valid = await connection.fetchval(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)", name
        )
        if is_valid is False:  # an earlier attempt was interrupted
            await connection.execute(f"DROP INDEX CONCURRENTLY {name}")
        if not is_valid:
            option = "" if is_empty else "CONCURRENTLY "
            await connection.execute(f"CREATE INDEX {option}{name} ON {partition.name}{definition}")
    attach = f"CREATE INDEX IF NOT EXISTS {index} ON {table}{definition}"
    await (connection.execute(attach) if is_empty else _attach(connection, attach))
    return True


async def _get_kind(connection: asyncpg.Connection, relation: str) -> str | None:
    kind: bytes | None = await connection.fetchval(
        "SELECT relkind FROM pg_class WHERE oid = to_regclass($1)", relation
    )
    return None if kind is None else kind.decode()


async def _attach(connection: asyncpg.Connection, statement: str) -> None:
    """Create the table's index, with pauses in which payments proceed."""
    deadline = monotonic() + _DEADLINE_SECONDS
    while True:
        try:
            async with connection.transaction():
                await connection.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
                await connection.execute(statement)
        except asyncpg.LockNotAvailableError:
            if monotonic() > deadline:
                raise
        else:
            return
        await asyncio.sleep(_PAUSE_SECONDS)
