"""Rollups of a period, exact at the time of the request.

Compacted rollups rarely change, and a month has many of them. Each process caches their sums until
the next compaction or the start of the next bucket. Uncompacted rollups are few and are read every
time.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from weakref import WeakKeyDictionary

from tapgate.reporting import queries
from tapgate.reporting.queries import Rollup
from tapgate.store.database import Database


class _CachedRollups(NamedTuple):
    compaction_count: int
    starts: Sequence[datetime]
    rollups: list[Rollup]


_cache: WeakKeyDictionary[Database, dict[str, _CachedRollups]] = WeakKeyDictionary()


async def load_rollups(database: Database, period: str, starts: Sequence[datetime]) -> list[Rollup]:
    """Return the rollups of a period, from one database snapshot.

    The same key may occur twice, compacted and uncompacted, and one of the two may be negative.
    """
    cached_by_period = _cache.setdefault(database, {})
    async with (
        database.connection() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        compaction_count = await queries.get_compaction_count(connection)
        uncompacted = await queries.list_uncompacted(connection, starts)
        cached = cached_by_period.get(period)
        if cached is None or (cached.compaction_count, cached.starts) != (compaction_count, starts):
            cached = _CachedRollups(
                compaction_count, starts, await queries.list_compacted(connection, starts)
            )
            cached_by_period[period] = cached
    return [*cached.rollups, *uncompacted]
