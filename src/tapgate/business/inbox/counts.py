"""Cached work queue counts. Every page of the console shows them."""

from datetime import datetime
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from tapgate.business.inbox import queries
from tapgate.business.inbox.queries import QueueCount
from tapgate.core.settings import Settings
from tapgate.runtime.cost_bound_cache import CostBoundCache
from tapgate.runtime.store.database import Database
from tapgate_client import money

_CACHE_SECONDS: Final = 5.0


class _Caches(NamedTuple):
    waiting: CostBoundCache[list[QueueCount]]
    low_floats: CostBoundCache[QueueCount]


_caches: WeakKeyDictionary[Database, _Caches] = WeakKeyDictionary()


async def load_counts(
    database: Database, settings: Settings, now: datetime, *, fresh: bool
) -> list[QueueCount]:
    """Return the counts of all queues, a few seconds old unless they must be fresh.

    The count of low floats, which reads all agents, is never computed more often than its cost
    allows.
    """
    caches = _caches.get(database)
    if caches is None:
        caches = _caches[database] = _Caches(
            CostBoundCache(_CACHE_SECONDS), CostBoundCache(_CACHE_SECONDS)
        )
    threshold = money.from_whole_units(settings.float_low, settings.currency)
    waiting = await caches.waiting.get(now, lambda: queries.count_waiting(database), fresh=fresh)
    low_floats = await caches.low_floats.get(
        now, lambda: queries.count_low_floats(database, threshold)
    )
    return [*waiting, low_floats]
