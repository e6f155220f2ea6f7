"""Prometheus metrics by book: transfers that have not ended, and numbers that both books have."""

from collections.abc import Iterable, Iterator
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
_SELECT_TRANSFERS: Final = """
    SELECT b.book, count(*) FILTER (WHERE b.status = 'stopped') AS stopped,
           extract(epoch FROM now() - min(coalesce(t.completed_at, b.created_at)))::float8 AS age
    FROM book_transfers b JOIN transactions t ON t.id = b.id
    WHERE b.status IN ('pending', 'stopped') AND t.status <> 'under_review'
    GROUP BY b.book"""
_SELECT_CONFLICTS: Final = """
    SELECT book, count(*) AS conflicts FROM number_checks
    WHERE status = 'conflict' AND book = ANY ($1) GROUP BY book"""


class BookMetrics:
    """Collects how many transfers wait for a decision, and the age of the oldest open one.

    Number conflicts are counted for the books in the settings: the others are not compared.
    """

    def __init__(self, database: Database, codes: Iterable[str]) -> None:
        self._database = database
        self._codes = list(codes)
        self._rows = CachedResult(self._load, _MAX_AGE_SECONDS)

    async def update(self) -> None:
        await self._rows.get()

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
        conflicts = GaugeMetricFamily(
            "tapgate_book_number_conflicts",
            "Customers of this book whose phone number another book has too",
            labels=["book"],
        )
        transfers, numbers = self._rows.latest or ((), ())
        for row in transfers:
            stopped.add_metric([row["book"]], row["stopped"])
            ages.add_metric([row["book"]], row["age"])
        for row in numbers:
            conflicts.add_metric([row["book"]], row["conflicts"])
        yield from (stopped, ages, conflicts)

    async def _load(self) -> tuple[list[asyncpg.Record], list[asyncpg.Record]]:
        try:
            async with self._database.snapshot(timeout_seconds=_TIMEOUT_SECONDS) as tx:
                return (
                    await tx.fetch(_SELECT_TRANSFERS, timeout=_TIMEOUT_SECONDS),
                    await tx.fetch(_SELECT_CONFLICTS, self._codes, timeout=_TIMEOUT_SECONDS),
                )
        except (ApiError, TimeoutError, asyncpg.PostgresError):
            return [], []
