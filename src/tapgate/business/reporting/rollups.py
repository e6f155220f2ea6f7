"""Reads and compacts the rollups that the ledger writes, exact at request time.

Compacted rollups rarely change, and a month has many of them. Each process caches their sums until
the next compaction or the start of the next bucket. Uncompacted rollups are few and are read every
time.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple, NoReturn
from weakref import WeakKeyDictionary

from tapgate.business.reporting import queries
from tapgate.business.reporting.queries import Rollup
from tapgate.ledger.effects.rollups import ON_CONFLICT_ADD
from tapgate.runtime.background import run_periodically
from tapgate.runtime.store.database import Database
from tapgate_client.clock import Clock

#: Slot of compacted rows, each of which merges the rows of all processes.
_COMPACTED_SLOT: Final = -1
_COMPACT_AFTER: Final = timedelta(hours=1)
_COMPACT_LIMIT: Final = 2_000
_COMPACT_INTERVAL_SECONDS: Final = 300.0
_LOCK_KEY: Final = 0x7467_6669  # "tgfi"


class _CachedRollups(NamedTuple):
    compaction_count: int
    starts: Sequence[datetime]
    end: datetime
    rollups: list[Rollup]


_cache: WeakKeyDictionary[Database, dict[str, _CachedRollups]] = WeakKeyDictionary()


async def load_rollups(
    database: Database, period: str, starts: Sequence[datetime], end: datetime
) -> list[Rollup]:
    """Return a period's rollups before `end`, from one database snapshot.

    `period` is the cache key. It must not have other bounds for most of the time.

    The same key may occur twice, compacted and uncompacted, and one of the two may be negative.
    """
    cached_by_period = _cache.setdefault(database, {})
    async with database.snapshot() as connection:
        compaction_count = await queries.get_compaction_count(connection)
        uncompacted = await queries.list_rollups(connection, starts, end, are_compacted=False)
        cached = cached_by_period.get(period)
        bounds = compaction_count, starts, end
        if cached is None or cached[:-1] != bounds:
            rollups = await queries.list_rollups(connection, starts, end, are_compacted=True)
            cached = _CachedRollups(*bounds, rollups)
            cached_by_period[period] = cached
    return [*cached.rollups, *uncompacted]


class RollupCompactor:
    """Merges the rows of all processes for an old bucket into one row per key.

    The table therefore does not grow with the number of processes. A later review decision adds
    new rows to an old bucket, and the next run compacts them.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def run(self) -> NoReturn:
        await run_periodically(self.compact, every=_COMPACT_INTERVAL_SECONDS, name="ledger.rollups")

    async def compact(self) -> None:
        before = self._clock() - _COMPACT_AFTER
        while await self._compact_chunk(before) == _COMPACT_LIMIT:
            pass

    async def _compact_chunk(self, before: datetime) -> int:
        async with self._database.transaction() as tx:
            if not await tx.fetchval("SELECT pg_try_advisory_xact_lock($1)", _LOCK_KEY):
                return 0
            # SKIP LOCKED: rows that a batch is updating are left for the next run.
            compacted = await tx.fetchval(
                f"""WITH old AS (
                        DELETE FROM figures WHERE ctid = ANY (ARRAY(
                            SELECT ctid FROM figures WHERE slot >= 0 AND quarter < $1
                            ORDER BY quarter LIMIT {_COMPACT_LIMIT} FOR UPDATE SKIP LOCKED))
                        RETURNING *
                    ), compacted AS (
                        INSERT INTO figures
                            (quarter, type, outcome, failure_code, slot, count, amount, fees)
                        SELECT quarter, type, outcome, failure_code, {_COMPACTED_SLOT}, sum(count),
                               sum(amount), sum(fees)
                        FROM old GROUP BY quarter, type, outcome, failure_code {ON_CONFLICT_ADD})
                    SELECT count(*) FROM old""",
                before,
            )
            if compacted:
                await tx.execute("UPDATE figures_folded SET times = times + 1")
        return int(compacted)
