"""Prometheus metrics for tasks that must succeed regularly, and for API keys that expire.

The numbers are read at most once in `_MAX_AGE_SECONDS` per process, and only when the metrics are
scraped. If the database does not respond in time, the metrics are missing until the next scrape.
"""

from collections.abc import Iterator
from typing import Final

import asyncpg
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from tapgate.runtime.cached_result import CachedResult
from tapgate.runtime.store.database import Database
from tapgate_client.errors import ApiError

_MAX_AGE_SECONDS: Final = 30.0
_TIMEOUT_SECONDS: Final = 1.0
_MAX_KEYS: Final = 50

#: The latest run of each task, and the age of the newest success. A task that never ran has no row.
_TASKS_SQL: Final = """
    SELECT task, succeeded, extract(epoch FROM now() - succeeded_at)::float8 AS age FROM task_runs
    UNION ALL
    (SELECT 'verification', broken = '{}', extract(epoch FROM now() - (
         SELECT proven_at FROM proofs WHERE broken = '{}' ORDER BY id DESC LIMIT 1))::float8
     FROM proofs ORDER BY id DESC LIMIT 1)
    UNION ALL
    (SELECT 'day_close', true, extract(epoch FROM now() - ends_at)::float8
     FROM closed_days ORDER BY day DESC LIMIT 1)
    UNION ALL
    (SELECT 'archive', files IS NOT NULL, extract(epoch FROM now() - (
         SELECT max(archived_at) FROM archived_months WHERE files IS NOT NULL))::float8
     FROM archived_months ORDER BY end_id DESC LIMIT 1)"""
#: A key that expired is reported for another week, so that an alert does not end with the expiry.
_KEYS_SQL: Final = """
    SELECT prefix, name, extract(epoch FROM expires_at - now())::float8 AS seconds FROM api_keys
    WHERE deleted_at IS NULL
      AND expires_at BETWEEN now() - interval '7 days' AND now() + interval '60 days'
    ORDER BY expires_at LIMIT $1"""


class TaskMetrics:
    """Collects the age and result of tasks, and the time until API keys expire."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tasks = CachedResult(lambda: self._load(_TASKS_SQL), _MAX_AGE_SECONDS)
        self._keys = CachedResult(lambda: self._load(_KEYS_SQL, _MAX_KEYS), _MAX_AGE_SECONDS)

    async def update(self) -> None:
        await self._tasks.get()
        await self._keys.get()

    def collect(self) -> Iterator[Metric]:
        succeeded = GaugeMetricFamily(
            "tapgate_task_succeeded", "Whether a task's latest run succeeded", labels=["task"]
        )
        ages = GaugeMetricFamily(
            "tapgate_task_success_age_seconds",
            "Time since a task last succeeded; for day_close, since the end of the last closed day",
            labels=["task"],
        )
        for row in self._tasks.latest or ():
            succeeded.add_metric([row["task"]], row["succeeded"])
            if row["age"] is not None:
                ages.add_metric([row["task"]], row["age"])
        keys = GaugeMetricFamily(
            "tapgate_key_expiry_seconds",
            "Time until an API key expires, for keys that expire within 60 days",
            labels=["prefix", "name"],
        )
        for row in self._keys.latest or ():
            keys.add_metric([row["prefix"], row["name"]], row["seconds"])
        yield from (succeeded, ages, keys)

    async def _load(self, sql: str, *arguments: object) -> list[asyncpg.Record]:
        try:
            async with self._database.snapshot(timeout_seconds=_TIMEOUT_SECONDS) as tx:
                rows: list[asyncpg.Record] = await tx.fetch(
                    sql, *arguments, timeout=_TIMEOUT_SECONDS
                )
                return rows
        except (ApiError, TimeoutError, asyncpg.PostgresError):
            return []
