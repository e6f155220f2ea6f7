"""The figures of a period, exact at the moment they are asked for.

Those of times that are over hardly ever change, and in a month there are many: each process
remembers what they add up to until some more were folded into them. The others are few.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from weakref import WeakKeyDictionary

from tapgate.overview import queries
from tapgate.overview.queries import Figure
from tapgate.store.database import Database


class _Remembered(NamedTuple):
    times_folded: int
    starts: Sequence[datetime]
    figures: list[Figure]


_remembered: WeakKeyDictionary[Database, dict[str, _Remembered]] = WeakKeyDictionary()


async def figures_of(database: Database, period: str, starts: Sequence[datetime]) -> list[Figure]:
    """Of one snapshot. A kind may be there twice, and one of them may be below zero."""
    of_periods = _remembered.setdefault(database, {})
    async with (
        database.connection() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        times = await queries.times_folded(connection)
        new = await queries.unfolded(connection, starts)
        known = of_periods.get(period)
        if known is None or (known.times_folded, known.starts) != (times, starts):
            known = _Remembered(times, starts, await queries.folded(connection, starts))
            of_periods[period] = known
    return [*known.figures, *new]
