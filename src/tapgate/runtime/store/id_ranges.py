"""ID ranges that let PostgreSQL open only a few months' partitions.

PostgreSQL plans a query for every partition that it cannot exclude. IDs are ordered by time, so an
ID range excludes all other months.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator
from datetime import timedelta
from typing import Any, Final, NamedTuple

from tapgate.core.id_generator import first_id_at, get_time

MAX_ID: Final = 2**63 - 1
#: The first range that `fetch_newest` reads. Each further range is longer by this factor.
_FIRST_RANGE: Final = timedelta(days=31)
_GROWTH: Final = 4
_MAX_RANGES: Final = 4


class IdRange(NamedTuple):
    first: int
    end: int


def add_range(numbers: Collection[int]) -> tuple[list[int], int, int]:
    """Return IDs with the lowest and the highest of them, as query parameters."""
    return list(numbers), min(numbers), max(numbers)


def iter_ranges(first: int, end: int, newest: int) -> Iterator[IdRange]:
    """Divide an ID range into a few, newest first.

    `newest` is about the highest ID that is stored. Higher IDs are part of the first range.
    """
    span = _FIRST_RANGE
    start = min(newest, end)
    for _ in range(_MAX_RANGES - 1):
        start = max(first, first_id_at(get_time(start) - span))
        if start <= first:
            break
        yield IdRange(start, end)
        end, span = start, span * _GROWTH
    yield IdRange(first, end)


async def fetch_oldest(
    fetch: Callable[[IdRange, int], Awaitable[list[Any]]],
    limit: int,
    *,
    newest: int,
    first: int = 0,
    end: int = MAX_ID,
) -> list[Any]:
    """Return the first `limit` rows of a query that is ordered by ascending ID."""
    return await _fetch_ranges(fetch, limit, reversed(list(iter_ranges(first, end, newest))))


async def fetch_newest(
    fetch: Callable[[IdRange, int], Awaitable[list[Any]]],
    limit: int,
    *,
    newest: int,
    first: int = 0,
    end: int = MAX_ID,
) -> list[Any]:
    """Return the first `limit` rows of a query that is ordered by descending ID.

    `fetch` returns the query's first rows in a range, up to a given number. Older ranges are read
    only until there are enough rows.
    """
    return await _fetch_ranges(fetch, limit, iter_ranges(first, end, newest))


async def _fetch_ranges(
    fetch: Callable[[IdRange, int], Awaitable[list[Any]]], limit: int, ranges: Iterator[IdRange]
) -> list[Any]:
    rows: list[Any] = []
    for id_range in ranges:
        rows += await fetch(id_range, limit - len(rows))
        if len(rows) >= limit:
            break
    return rows
