"""The figures of a period, exact at the moment they are asked for.

Those of times that are over hardly ever change, and in a month there are many: each process
remembers what they add up to until some more were folded into them. The others are few.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from weakref import WeakKeyDictionary

from tapgate.overview import queries
from tapgate.overview.queries import Rollup
from tapgate.store.database import Database


class _CachedRollups(NamedTuple):
    compaction_count: int
    starts: Sequence[datetime]
    rollups: list[Rollup]


_cache: WeakKeyDictionary[Database, dict[str, _CachedRollups]] = WeakKeyDictionary()


async def load_rollups(database: Database, period: str, starts: Sequence[datetime]) -> list[Rollup]:
    """Of one snapshot. A kind may be there twice, and one of them may be below zero."""
    of_periods = _cache.setdefault(database, {})
    async with (
        database.connection() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        times = await queries.get_compaction_count(connection)
        new = await queries.list_uncompacted(connection, starts)
        known = of_periods.get(period)
        if known is None or (known.compaction_count, known.starts) != (times, starts):
            known = _CachedRollups(times, starts, await queries.list_compacted(connection, starts))
            of_periods[period] = known
    return [*known.rollups, *new]
