"""SQL query for what waits in work queues. It reads at most 100 rows of each queue."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from tapgate.business.inbox.queues import CALLER, WorkQueue
from tapgate.runtime.store.database import Database
from tapgate_client.schemas.work_queues import MAX_COUNTED_ITEMS, WorkQueueName


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """What queries depend on. Shared results have no admin."""

    admin_id: int | None
    role: str | None
    low_float: int  # in minor units
    now: datetime


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """Item that waits; see `WorkQueue`."""

    queue: WorkQueueName
    id: int
    since: datetime | None
    due_at: datetime | None
    urgency: int
    subject: str | None
    detail: str | None
    amount: int | None
    assignee: int | None


async def list_items(database: Database, queues: Sequence[WorkQueue], caller: Caller) -> list[Item]:
    """Return what waits in some queues, each in its own order."""
    if not queues:
        return []
    parts = " UNION ALL ".join(f"({queue.sql} LIMIT {MAX_COUNTED_ITEMS})" for queue in queues)
    rows = await database.fetch(
        f"WITH {CALLER} {parts}", caller.admin_id, caller.role, caller.low_float, caller.now
    )
    return [Item(**{**row, "queue": WorkQueueName(row["queue"])}) for row in rows]
