"""Prometheus metrics for transfers to other books that have not ended, by book."""

from collections.abc import Iterator
from typing import Final

import asyncpg
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from tapgate.runtime.cached_result import CachedResult
from tapgate.runtime.store.database import Database
from tapgate_client.errors import ApiError

_MAX_AGE_SECONDS: Final = 10.0
_TIMEOUT_SECONDS: Final = 1.0
#: A transfer under review in this book waits for its review, not for the other book.
_SELECT: Final = """
    SELECT b.book, count(*) FILTER (WHERE b.status = 'stopped') AS stopped,
           extract(epoch FROM now() - min(coalesce(t.completed_at, b.created_at)))::float8 AS age
    FROM book_transfers b JOIN transactions t ON t.id = b.id
    WHERE b.status IN ('pending', 'stopped') AND t.status <> 'under_review'
    GROUP BY b.book"""


class BookTransferMetrics:
    """Collects how many transfers wait for a decision, and the age of the oldest open one."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._books = CachedResult(self._load, _MAX_AGE_SECONDS)

    async def update(self) -> None:
        await self._books.get()

    def collect(self) -> Iterator[Metric]:
        stopped = GaugeMetricFamily(
            "tapgate_book_transfers_stopped",
            "Transfers to another book that wait for a decision by staff",
            labels=["book"],
        )
        ages = GaugeMetricFamily(
            "tapgate_book_transfer_age_seconds",
            "Age of the oldest transfer that another book has neither credited nor refused",
            labels=["book"],
        )
        for row in self._books.latest or ():
            stopped.add_metric([row["book"]], row["stopped"])
            ages.add_metric([row["book"]], row["age"])
        yield from (stopped, ages)

    async def _load(self) -> list[asyncpg.Record]:
        try:
            async with self._database.snapshot(timeout_seconds=_TIMEOUT_SECONDS) as tx:
                rows: list[asyncpg.Record] = await tx.fetch(_SELECT, timeout=_TIMEOUT_SECONDS)
                return rows
        except (ApiError, TimeoutError, asyncpg.PostgresError):
            return []
