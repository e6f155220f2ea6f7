"""Prometheus metrics for work that waits in the database.

The numbers are read at most once in `_MAX_AGE_SECONDS` per process, and only when the metrics are
scraped. The queries read at most `MAX_COUNTED_JOBS` rows per queue, by index. If the database does
not respond in time, the metrics are missing until the next scrape.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import asyncpg
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from tapgate.runtime.cached_result import CachedResult
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.pipeline import send_ahead
from tapgate_client.errors import ApiError

_MAX_AGE_SECONDS: Final = 10.0
TIMEOUT_SECONDS: Final = 1.0


class BacklogMetrics:
    """Collects the backlogs that queries report; see `store.work_queue.build_backlog_sql`."""

    def __init__(self, database: Database, queries: Sequence[str]) -> None:
        self._database = database
        self.sql = " UNION ALL ".join(queries)
        self._result: CachedResult[list[asyncpg.Record]] = CachedResult(
            self._load, _MAX_AGE_SECONDS
        )

    async def update(self) -> None:
        await self._result.get()

    def collect(self) -> Iterator[Metric]:
        jobs = GaugeMetricFamily(
            "tapgate_queue_jobs", "Unfinished jobs in a queue, at most 10,000", labels=["queue"]
        )
        oldest = GaugeMetricFamily(
            "tapgate_queue_oldest_seconds", "Age of the oldest unfinished job", labels=["queue"]
        )
        overdue = GaugeMetricFamily(
            "tapgate_queue_overdue_seconds",
            "Time since the job that is due longest became due, 0 if none is due",
            labels=["queue"],
        )
        for row in self._result.latest or ():
            jobs.add_metric([row["queue"]], row["jobs"])
            oldest.add_metric([row["queue"]], row["oldest"])
            overdue.add_metric([row["queue"]], row["overdue"])
        yield from (jobs, oldest, overdue)

    async def _load(self) -> list[asyncpg.Record]:
        try:
            async with self._database.snapshot(timeout_seconds=TIMEOUT_SECONDS) as tx:
                # The planner could prefer to read a whole table while its statistics are old.
                send_ahead(tx, "SET LOCAL enable_seqscan = off")
                rows: list[asyncpg.Record] = await tx.fetch(self.sql, timeout=TIMEOUT_SECONDS)
                return rows
        except (ApiError, TimeoutError, asyncpg.PostgresError):
            return []
