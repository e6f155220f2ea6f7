"""What waits in the work queues, cached. Every page of the console shows the counts."""

from collections.abc import Collection
from typing import Final
from weakref import WeakKeyDictionary

import msgspec

from tapgate.business.inbox.queries import Caller, Item, list_items
from tapgate.business.inbox.queues import QUEUES, WorkQueue
from tapgate.runtime.cost_bound_cache import CostBoundCache
from tapgate.runtime.store.database import Database

_CACHE_SECONDS: Final = 5.0
_PERSONAL: Final = tuple(queue for queue in QUEUES if queue.is_personal)
_SHARED: Final = tuple(
    queue for queue in QUEUES if not queue.is_personal and not queue.reads_whole_table
)
_EXPENSIVE: Final = tuple(queue for queue in QUEUES if queue.reads_whole_table)

_caches: WeakKeyDictionary[Database, tuple[CostBoundCache[list[Item]], ...]] = WeakKeyDictionary()


async def load_items(
    database: Database, caller: Caller, visible: Collection[WorkQueue], *, fresh: bool
) -> list[Item]:
    """Return what waits in the visible queues, a few seconds old unless it must be fresh.

    Queues that read a whole table are never read more often than their cost allows.
    """
    caches = _caches.get(database)
    if caches is None:
        caches = _caches[database] = (
            CostBoundCache(_CACHE_SECONDS),
            CostBoundCache(_CACHE_SECONDS),
        )
    nobody = msgspec.structs.replace(caller, admin_id=None, role=None)
    shared, expensive = caches
    items = [
        *await shared.get(caller.now, lambda: list_items(database, _SHARED, nobody), fresh=fresh),
        *await expensive.get(caller.now, lambda: list_items(database, _EXPENSIVE, nobody)),
        *await list_items(database, [each for each in _PERSONAL if each in visible], caller),
    ]
    names = {queue.name for queue in visible}
    return [item for item in items if item.queue in names]
