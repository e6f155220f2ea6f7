"""Expensive query result, cached in proportion to its cost."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Final, Generic, TypeVar

T = TypeVar("T")

#: A result is cached for at least the time it took to compute multiplied by this factor, which
#: bounds the fraction of time that the database spends on it.
_COST_FACTOR: Final = 20


class CostBoundCache(Generic[T]):
    """Caches a result for at least `min_seconds`. Only one task computes it at a time."""

    def __init__(self, min_seconds: float) -> None:
        self._min_seconds = min_seconds
        self._lock = asyncio.Lock()
        self._result: T | None = None
        self._valid_from = self._valid_until = datetime.min.replace(tzinfo=UTC)

    async def get(
        self, now: datetime, compute: Callable[[], Awaitable[T]], *, fresh: bool = False
    ) -> T:
        """Return the cached result, or compute it if it has expired or must be fresh."""
        if not fresh and (result := self._get_valid(now)) is not None:
            return result
        async with self._lock:
            if not fresh and (result := self._get_valid(now)) is not None:
                return result
            started = perf_counter()
            result = await compute()
            seconds = max(self._min_seconds, _COST_FACTOR * (perf_counter() - started))
            self._valid_from, self._valid_until = now, now + timedelta(seconds=seconds)
            self._result = result
            return result

    def _get_valid(self, now: datetime) -> T | None:
        return self._result if self._valid_from <= now < self._valid_until else None
