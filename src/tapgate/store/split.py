"""Division of the tables that existed before partitioning into partitions by month.

The rows are copied in small steps while payments continue. A trigger records the rows that change
meanwhile, and they are copied again. At the end, the copies replace the old table in one short
database transaction. Until then nothing has changed for payments, so the division can be
interrupted at any step, and the next run continues with the rows that are not copied yet.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from typing import Final, NamedTuple

import asyncpg

from tapgate.store import StoreError
from tapgate.store.partitions import (
    LOCK_TIMEOUT,
    TABLES,
    Partition,
    PartitionedTable,
    attach,
    create_detached,
    get_month_start,
    get_partition_name,
    list_partitions,
)
from tapgate_client.ids import first_id_at, get_time

#: Transactions, or entries, that one step copies.
STEP_ROWS: Final = 5_000
_MAX_SWAP_ATTEMPTS: Final = 100
_UNCOPIED_KEYS: Final = "uncopied_keys"
_MAX_ID: Final = 2**63 - 1
_QUERY_TIMEOUT_SECONDS: Final = 3600.0

#: Called between steps.
Pause = Callable[[], Awaitable[None]]


async def copy_keys(connection: asyncpg.Connection, pause: Pause) -> AsyncIterator[int]:
    """Copy the keys of old transactions to their tables, and yield the last ID of each step."""
    while True:
        async with connection.transaction():
            state = await connection.fetchval(
                "SELECT value FROM installation WHERE name = $1 FOR UPDATE", _UNCOPIED_KEYS
            )
            if state is None:
                return
            start = int(state) if state.isdigit() else -1
            last = await _find_step_end(connection, "transactions_initial", "id", start)
            if last is None:
                await connection.execute("DELETE FROM installation WHERE name = $1", _UNCOPIED_KEYS)
                return
            await connection.execute(
                """INSERT INTO idempotency_keys
                   SELECT scope, request_id, id FROM transactions_initial
                   WHERE id > $1 AND id <= $2 AND request_id IS NOT NULL
                   ON CONFLICT DO NOTHING""",
                start,
                last,
            )
            # Locked, because a review that fails a transaction releases its reference.
            await connection.execute(
                """WITH used AS (
                       SELECT partner_id, partner_reference, id FROM transactions_initial
                       WHERE id > $1 AND id <= $2 AND partner_reference IS NOT NULL
                         AND status <> 'failed' FOR SHARE)
                   INSERT INTO partner_references SELECT * FROM used ON CONFLICT DO NOTHING""",
                start,
                last,
            )
            await connection.execute(
                "UPDATE installation SET value = $2 WHERE name = $1", _UNCOPIED_KEYS, str(last)
            )
        yield last
        await pause()


async def _find_step_end(
    connection: asyncpg.Connection, table: str, column: str, start: int, end: int = _MAX_ID
) -> int | None:
    """Return the last ID of the next rows after `start`, or None if there are no more."""
    last: int | None = await connection.fetchval(
        f"""SELECT max(id) FROM (
                SELECT {column} AS id FROM {table} WHERE {column} > $1 AND {column} < $2
                ORDER BY {column} LIMIT {STEP_ROWS}) AS step""",
        start,
        end,
    )
    return last


class Division(NamedTuple):
    """Division of one old table."""

    table: PartitionedTable
    old: str
    end: int
    months: list[datetime]

    @property
    def changes(self) -> str:
        return f"{self.table.name}_changes"

    def list_parts(self) -> list[Partition]:
        bounds = [*(first_id_at(month) for month in self.months), self.end]
        return [
            Partition(get_partition_name(self.table, month), lower, upper)
            for month, lower, upper in zip(self.months, bounds[:-1], bounds[1:], strict=True)
        ]


async def divide(connection: asyncpg.Connection, now: datetime, pause: Pause) -> AsyncIterator[str]:
    """Divide the old tables into months, and yield what was done.

    The keys must have been copied: the months have no index for them. Raises StoreError if an old
    table still receives new rows.
    """
    assert not await connection.fetchval(
        "SELECT EXISTS (SELECT FROM installation WHERE name = $1)", _UNCOPIED_KEYS
    )
    for table in TABLES:
        division = await _plan(connection, table, now)
        if division is not None:
            async for line in _divide_table(connection, division, pause):
                yield line
        await connection.execute(f"DROP TABLE IF EXISTS {table.name}_divided")


async def _plan(
    connection: asyncpg.Connection, table: PartitionedTable, now: datetime
) -> Division | None:
    old = f"{table.name}_initial"
    first = (await list_partitions(connection, table.name))[0]
    # Older rows stayed in the ledger when their months were archived, and stay in the first
    # partition.
    archive_end = await connection.fetchval("SELECT coalesce(max(end_id), 0) FROM archived_months")
    oldest = await connection.fetchval(
        f"SELECT min({table.id_column}) FROM {old} WHERE {table.id_column} >= $1", archive_end
    )
    if oldest is None or first.upper is None:
        return None
    if first_id_at(now) < first.upper:
        raise StoreError(
            f"{old} receives new rows until {get_time(first.upper):%Y-%m-%d}. Run the command again"
            " after that day"
        )
    end, months = get_time(first.upper), [get_month_start(get_time(archive_end or oldest))]
    while (month := get_month_start(months[-1], 1)) < end:
        months.append(month)
    return Division(table, old, first.upper, months)


async def _divide_table(
    connection: asyncpg.Connection, division: Division, pause: Pause
) -> AsyncIterator[str]:
    await _retry(lambda: _record_changes(connection, division), pause)
    for part in division.list_parts():
        await _create_part(connection, division, part)
        await _copy_part(connection, division, part, pause)
        yield f"{part.name} copied"
    while await _copy_changes(connection, division) == STEP_ROWS:
        await pause()
    await _compare(connection, division)
    await _retry(lambda: _swap(connection, division), pause)
    yield f"{division.old} divided into {len(division.months)} months"


async def _retry(work: Callable[[], Awaitable[None]], pause: Pause) -> None:
    """Run a step that locks a table against payments, and retry if the lock takes too long."""
    for _ in range(_MAX_SWAP_ATTEMPTS):
        try:
            return await work()
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            await asyncio.sleep(0.2)
            await pause()
    raise StoreError("other sessions use the tables all the time. Run the command again later")


async def _record_changes(connection: asyncpg.Connection, division: Division) -> None:
    """Create a trigger that records the IDs of rows that change from now on."""
    table = division.table
    if await connection.fetchval("SELECT to_regclass($1) IS NOT NULL", division.changes):
        return
    async with connection.transaction():
        await connection.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
        await connection.execute(
            f"""CREATE TABLE {division.changes} (id bigint NOT NULL);
                CREATE FUNCTION record_{division.changes}() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN
                    INSERT INTO {division.changes} VALUES (NEW.{table.id_column});
                    RETURN NULL;
                END $$;
                CREATE TRIGGER record_changes AFTER INSERT OR UPDATE ON {division.old}
                    FOR EACH ROW EXECUTE FUNCTION record_{division.changes}()"""
        )


async def _create_part(connection: asyncpg.Connection, division: Division, part: Partition) -> None:
    """Create a table for a month. Its check makes the scan at the attachment unnecessary."""
    column = division.table.id_column
    async with connection.transaction():
        await create_detached(connection, division.table, part.name)
        await connection.execute(
            f"""ALTER TABLE {part.name} DROP CONSTRAINT IF EXISTS bounds, ADD CONSTRAINT bounds
                CHECK ({column} >= {part.lower} AND {column} < {part.upper})"""
        )


async def _copy_part(
    connection: asyncpg.Connection, division: Division, part: Partition, pause: Pause
) -> None:
    """Copy the rows of a month that are not copied yet."""
    column = division.table.id_column
    assert part.lower is not None
    assert part.upper is not None
    copied = await connection.fetchval(f"SELECT max({column}) FROM {part.name}")
    start = part.lower - 1 if copied is None else copied
    while last := await _find_step_end(connection, division.old, column, start, part.upper):
        await connection.execute(
            f"""INSERT INTO {part.name} SELECT * FROM {division.old}
                WHERE {column} > $1 AND {column} <= $2""",
            start,
            last,
        )
        start = last
        await pause()


async def _copy_changes(connection: asyncpg.Connection, division: Division) -> int:
    """Copy the changed rows again, and return how many there were."""
    column = division.table.id_column
    async with connection.transaction():
        changed = [
            row["id"]
            for row in await connection.fetch(
                f"""DELETE FROM {division.changes} WHERE ctid = ANY (ARRAY(
                        SELECT ctid FROM {division.changes} LIMIT {STEP_ROWS})) RETURNING id"""
            )
        ]
        for part in division.list_parts():
            selected = [id_ for id_ in changed if (part.lower or 0) <= id_ < (part.upper or 0)]
            if selected:
                await connection.execute(
                    f"DELETE FROM {part.name} WHERE {column} = ANY ($1::bigint[])", selected
                )
                await connection.execute(
                    f"""INSERT INTO {part.name} SELECT * FROM {division.old}
                        WHERE {column} = ANY ($1::bigint[])""",
                    selected,
                )
    return len(changed)


async def _compare(connection: asyncpg.Connection, division: Division) -> None:
    """Compare the copies with the old table before they replace it."""
    for part in division.list_parts():
        counted = "count(*), coalesce(sum(amount), 0)"
        column = division.table.id_column
        expected = await connection.fetchrow(
            f"SELECT {counted} FROM {division.old} WHERE {column} >= $1 AND {column} < $2",
            part.lower,
            part.upper,
            timeout=_QUERY_TIMEOUT_SECONDS,
        )
        found = await connection.fetchrow(
            f"SELECT {counted} FROM {part.name}", timeout=_QUERY_TIMEOUT_SECONDS
        )
        pending = await connection.fetchval(f"SELECT EXISTS (SELECT FROM {division.changes})")
        if tuple(found) != tuple(expected) and not pending:
            raise StoreError(
                f"{part.name} has {found[0]} rows, but {division.old} has {expected[0]} of that"
                f" month. Nothing was changed: drop {part.name} and run the command again"
            )


async def _swap(connection: asyncpg.Connection, division: Division) -> None:
    """Replace the old table with the months. The old table remains, detached."""
    table, parts = division.table, division.list_parts()
    await create_detached(connection, table, f"{division.old}_new")
    async with connection.transaction():
        await connection.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
        await connection.execute(f"ALTER TABLE {table.name} DETACH PARTITION {division.old}")
        while await _copy_changes(connection, division):
            pass
        await connection.execute(
            f"""INSERT INTO {division.old}_new SELECT * FROM {division.old}
                WHERE {table.id_column} < {parts[0].lower}"""
        )
        await connection.execute(
            f"""DROP TRIGGER record_changes ON {division.old};
                DROP FUNCTION record_{division.changes};
                DROP TABLE {division.changes};
                ALTER TABLE {division.old} RENAME TO {table.name}_divided;
                ALTER TABLE {division.old}_new RENAME TO {division.old}"""
        )
        await attach(connection, table, Partition(division.old, None, parts[0].lower))
        for part in parts:
            await attach(connection, table, part)
            await connection.execute(f"ALTER TABLE {part.name} DROP CONSTRAINT bounds")
