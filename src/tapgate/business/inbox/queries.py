"""SQL queries that count what waits in the work queues.

Each count reads at most 100 rows of an index, except the low-float agent count, which reads all
agents.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple

from tapgate.business.agents.queries import HAS_LOW_FLOAT
from tapgate.events.webhooks.queries import IS_FAILING
from tapgate.runtime.store.database import Database
from tapgate_client.schemas.work_queues import MAX_COUNTED_ITEMS, WorkQueueName

#: Queries for the time since which each item waits, oldest first.
_WAITING: Final[Mapping[WorkQueueName, str]] = {
    WorkQueueName.KYC_REVIEWS: """SELECT kyc_pending_since AS since FROM subscribers
        WHERE kyc_status = 'PENDING' AND kyc_pending_since IS NOT NULL AND NOT restricted
        ORDER BY kyc_pending_since, id""",
    WorkQueueName.SUPPORT_REQUESTS: """SELECT created_at AS since FROM support_requests
        WHERE status = 'open' ORDER BY id""",
    WorkQueueName.ALERTS: """SELECT created_at AS since FROM alerts
        WHERE status = 'open' AND NOT review ORDER BY id""",
    WorkQueueName.HELD_PAYMENTS: """SELECT created_at AS since FROM transactions
        WHERE status = 'under_review' ORDER BY id""",
    WorkQueueName.FAILING_WEBHOOKS: f"""SELECT coalesce(failing_since, status_changed_at) AS since
        FROM webhook_endpoints WHERE deleted_at IS NULL AND {IS_FAILING} ORDER BY since""",
}
_COUNT_SQL: Final = " UNION ALL ".join(
    f"""(SELECT '{name}' AS name, count(*) AS waiting, min(since) AS oldest_at
         FROM ({query} LIMIT {MAX_COUNTED_ITEMS}) AS waiting)"""
    for name, query in _WAITING.items()
)
_COUNT_LOW_FLOAT_SQL: Final = f"""
    SELECT count(*) FROM (
        SELECT FROM agents JOIN accounts a ON a.id = agents.account_id
        WHERE {HAS_LOW_FLOAT.format("$1")} LIMIT {MAX_COUNTED_ITEMS}) AS low"""


class QueueCount(NamedTuple):
    name: WorkQueueName
    waiting: int
    oldest_at: datetime | None


async def count_waiting(database: Database) -> list[QueueCount]:
    rows = await database.fetch(_COUNT_SQL)
    return [QueueCount(WorkQueueName(name), waiting, oldest) for name, waiting, oldest in rows]


async def count_low_floats(database: Database, threshold: int) -> QueueCount:
    waiting: int = await database.fetchval(_COUNT_LOW_FLOAT_SQL, threshold)
    return QueueCount(WorkQueueName.LOW_FLOAT, waiting, None)
