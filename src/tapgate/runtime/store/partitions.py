"""Monthly ledger table partitions (UTC), found from the time in the IDs.

The last partition has no upper bound, so a row always has a partition. Months are created ahead:
the empty last partition is moved beyond them. If it has rows, it gets an upper bound instead. This
is the case for the table that existed before it was partitioned, and after months without this job.

Only exchanging bounds locks a table against payments, for milliseconds. Everything that takes
longer is done before. Each table is changed in a separate database transaction, because payments
lock them in another order. A job that is interrupted leaves an unattached table at most, which the
next one uses.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import asyncpg

from tapgate.core.id_generator import first_id_at, get_time

#: Months after the current one that have partitions.
MONTHS_AHEAD: Final = 3
#: How long payments may wait behind a bounds exchange while it waits for other sessions.
LOCK_TIMEOUT: Final = "200ms"
#: A partition that still receives rows ends at least this much later.
_MIN_REMAINING_TIME: Final = timedelta(days=7)
_FIRST_MONTH: Final = datetime(2025, 2, 1, tzinfo=UTC)
_BOUNDS_PATTERN: Final = re.compile(r"FROM \((.+?)\) TO \((.+?)\)")

_SELECT_PARTITIONS: Final = """
    SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) AS bounds
    FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
    WHERE inhparent = to_regclass($1) AND NOT inhdetachpending"""


class PartitionedTable(NamedTuple):
    name: str
    id_column: str
    #: Partition storage parameters.
    storage: str
    column_options: str = ""


#: Vacuum after a number of new rows, whatever the size: pages become all-visible and frozen soon
#: after they are written, so that a month that is over is never read by a vacuum again.
_APPEND_ONLY: Final = (
    "autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 1000000,"
    " autovacuum_freeze_min_age = 0"
)
TABLES: Final = (
    PartitionedTable("entries", "transaction_id", _APPEND_ONLY),
    # Refunds and reviews update a transaction on its page. The planner must not conclude from a
    # sample that a few accounts sent or received everything: migrations 0017 and 0093.
    PartitionedTable(
        "transactions",
        "id",
        f"fillfactor = 90, {_APPEND_ONLY}",
        "ALTER COLUMN from_account SET (n_distinct = -0.05),"
        " ALTER COLUMN to_account SET (n_distinct = -0.05)",
    ),
)


class Partition(NamedTuple):
    name: str
    #: The first ID, or None without a lower bound.
    lower: int | None
    #: The first ID after it, or None without an upper bound.
    upper: int | None


def get_month_start(moment: datetime, months: int = 0) -> datetime:
    """Return the start of a moment's month, or the start of a month that many months later."""
    moment = moment.astimezone(UTC)
    index = moment.year * 12 + moment.month - 1 + months
    return datetime(index // 12, index % 12 + 1, 1, tzinfo=UTC)


async def list_partitions(connection: asyncpg.Connection, table: str) -> list[Partition]:
    """Return a table's partitions in ascending order."""
    partitions = []
    for name, bounds in await connection.fetch(_SELECT_PARTITIONS, table):
        match = _BOUNDS_PATTERN.search(bounds)
        assert match is not None, bounds
        partitions.append(Partition(name, *(_parse_bound(text) for text in match.groups())))
    return sorted(partitions, key=lambda partition: partition.lower or -1)


def _parse_bound(text: str) -> int | None:
    return None if text in ("MINVALUE", "MAXVALUE") else int(text.strip("'"))


async def create_months(connection: asyncpg.Connection, now: datetime) -> list[str]:
    """Create missing partitions for this and the next months, and return their names.

    The caller must hold the job's lock. Raises LockNotAvailableError if another session uses a
    table for longer; the caller tries again later.
    """
    created: list[str] = []
    for table in TABLES:
        last = (await list_partitions(connection, table.name))[-1]
        end = get_month_start(now, MONTHS_AHEAD + 1)
        if last.lower is not None and last.lower >= first_id_at(end):
            continue
        created += await _add_months(connection, table, last, now, end)
    return created


async def _add_months(
    connection: asyncpg.Connection,
    table: PartitionedTable,
    last: Partition,
    now: datetime,
    end: datetime,
) -> list[str]:
    """Add months up to `end` at least; see the module docstring."""
    newest_id = await connection.fetchval(f"SELECT max({table.id_column}) FROM {last.name}")
    if newest_id is None and last.lower is not None:
        start, name_if_kept = get_time(last.lower), None
    else:
        start = get_month_start(now)
        if newest_id is not None:
            latest = max(now, get_time(newest_id)) + _MIN_REMAINING_TIME
            start = get_month_start(latest, 1)
            await _add_upper_bound(connection, table, last.name, start)
        name_if_kept = (
            last.name if last.lower is None else get_partition_name(table, start, "until")
        )
    start = max(start, _FIRST_MONTH)
    months: list[datetime] = []
    while start < end or not months:
        months.append(start)
        start = get_month_start(start, 1)
    names = [get_partition_name(table, month) for month in months]
    overflow = f"{table.name}_overflow"
    for name in names if name_if_kept is None else [*names, f"{overflow}_new"]:
        await create_detached(connection, table, name)
    bounds = [first_id_at(month) for month in (*months, start)]
    async with connection.transaction():
        await connection.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
        await connection.execute(f"ALTER TABLE {table.name} DETACH PARTITION {last.name}")
        if name_if_kept is not None:
            if name_if_kept != last.name:
                await connection.execute(f"ALTER TABLE {last.name} RENAME TO {name_if_kept}")
            await attach(connection, table, Partition(name_if_kept, last.lower, bounds[0]))
            await connection.execute(
                f"ALTER TABLE {name_if_kept} DROP CONSTRAINT IF EXISTS upper_bound"
            )
            await connection.execute(f"ALTER TABLE {overflow}_new RENAME TO {overflow}")
        for name, lower, upper in zip(names, bounds[:-1], bounds[1:], strict=True):
            await attach(connection, table, Partition(name, lower, upper))
        await attach(connection, table, Partition(overflow, bounds[-1], None))
    return names


async def _add_upper_bound(
    connection: asyncpg.Connection, table: PartitionedTable, name: str, end: datetime
) -> None:
    """Add a check, without blocking writes, so that attaching does not scan the partition."""
    async with connection.transaction():
        await connection.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
        await connection.execute(f"ALTER TABLE {name} DROP CONSTRAINT IF EXISTS upper_bound")
        await connection.execute(
            f"""ALTER TABLE {name} ADD CONSTRAINT upper_bound
                CHECK ({table.id_column} < {first_id_at(end)}) NOT VALID"""
        )
    await connection.execute(f"ALTER TABLE {name} VALIDATE CONSTRAINT upper_bound")


def get_partition_name(table: PartitionedTable, month: datetime, infix: str = "") -> str:
    return "_".join(filter(None, (table.name, infix, f"{month:%Y_%m}")))


async def create_detached(
    connection: asyncpg.Connection, table: PartitionedTable, name: str
) -> None:
    """Create a table with a partition's columns, checks and indexes, unless it exists."""
    async with connection.transaction():
        if await connection.fetchval("SELECT to_regclass($1) IS NOT NULL", name):
            return
        await connection.execute(
            f"CREATE TABLE {name} (LIKE {table.name} INCLUDING ALL) WITH ({table.storage})"
        )
        if table.column_options:
            await connection.execute(f"ALTER TABLE {name} {table.column_options}")
        # Row triggers come with the attachment, statement triggers do not.
        await connection.execute(
            f"""CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON {name}
                FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"""
        )


async def attach(
    connection: asyncpg.Connection, table: PartitionedTable, partition: Partition
) -> None:
    lower, upper = (
        fallback if bound is None else f"'{bound}'"
        for bound, fallback in ((partition.lower, "MINVALUE"), (partition.upper, "MAXVALUE"))
    )
    await connection.execute(
        f"""ALTER TABLE {table.name} ATTACH PARTITION {partition.name}
            FOR VALUES FROM ({lower}) TO ({upper})"""
    )
