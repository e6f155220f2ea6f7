"""Partitions for the months of the generated history, as a running installation has them."""

from datetime import datetime

import asyncpg

from tapgate.core.id_generator import first_id_at, get_time
from tapgate.runtime.store.partitions import (
    TABLES,
    Partition,
    attach,
    create_detached,
    get_month_start,
    get_partition_name,
    list_partitions,
)


async def create_past_months(connection: asyncpg.Connection, since: datetime) -> None:
    """Create the monthly partitions from a time on, unless they exist."""
    for table in TABLES:
        first = (await list_partitions(connection, table.name))[0]
        has_rows = await connection.fetchval(f"SELECT EXISTS (SELECT FROM {first.name})")
        months = [get_month_start(since)]
        if has_rows or first.upper is None or first_id_at(months[0]) >= first.upper:
            continue
        while (month := get_month_start(months[-1], 1)) < get_time(first.upper):
            months.append(month)
        bounds = [*map(first_id_at, months), first.upper]
        names = [get_partition_name(table, month) for month in months]
        for name in names:
            await create_detached(connection, table, name)
        async with connection.transaction():
            await connection.execute(f"ALTER TABLE {table.name} DETACH PARTITION {first.name}")
            await attach(connection, table, Partition(first.name, None, bounds[0]))
            for name, lower, upper in zip(names, bounds[:-1], bounds[1:], strict=True):
                await attach(connection, table, Partition(name, lower, upper))
