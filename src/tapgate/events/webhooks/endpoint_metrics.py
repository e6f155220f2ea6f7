"""Prometheus metrics for webhook endpoints that fail or are late, by endpoint.

A receiver that hangs or fails concerns its owner. The backlog of all endpoints together therefore
leaves failing ones out, and each is reported here, with its host, for an alert that names it.
"""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

import asyncpg
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from tapgate.runtime.cached_result import CachedResult
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.errors import ApiError

_MAX_AGE_SECONDS: Final = 10.0
_TIMEOUT_SECONDS: Final = 1.0
_MAX_ENDPOINTS: Final = 50
_SELECT: Final = """
    SELECT id, url, extract(epoch FROM now() - failing_since)::float8 AS seconds
    FROM webhook_endpoints
    WHERE deleted_at IS NULL AND status = 'active' AND failing_since IS NOT NULL
    ORDER BY failing_since LIMIT $1"""


class EndpointMetrics:
    """Collects how long endpoints have been failing, the longest failing ones first."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._failing = CachedResult(self._load, _MAX_AGE_SECONDS)

    async def update(self) -> None:
        await self._failing.get()

    def collect(self) -> Iterator[Metric]:
        metric = GaugeMetricFamily(
            "tapgate_webhook_endpoint_failing_seconds",
            "Time since a webhook endpoint's first failure without a success, for at most 50",
            labels=["endpoint", "host"],
        )
        for row in self._failing.latest or ():
            endpoint_id = ids.encode(ids.WEBHOOK_ENDPOINT, row["id"])
            metric.add_metric([endpoint_id, urlsplit(row["url"]).hostname or ""], row["seconds"])
        yield metric

    async def _load(self) -> list[asyncpg.Record]:
        try:
            async with self._database.snapshot(timeout_seconds=_TIMEOUT_SECONDS) as tx:
                rows: list[asyncpg.Record] = await tx.fetch(
                    _SELECT, _MAX_ENDPOINTS, timeout=_TIMEOUT_SECONDS
                )
                return rows
        except (ApiError, TimeoutError, asyncpg.PostgresError):
            return []
