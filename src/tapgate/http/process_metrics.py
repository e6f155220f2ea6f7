"""Prometheus metrics for a node's processes: build, workers, disk, cache and connections."""

import platform
import shutil
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NoReturn

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from tapgate import VERSION
from tapgate.core.settings import Settings
from tapgate.http.rate_limits.throttle import Throttle
from tapgate.runtime.background import run_periodically
from tapgate.runtime.node_files import get_shared_folder
from tapgate.runtime.shared_metrics import Counter, Gauge, RenderedFamily, SharedMetrics
from tapgate.runtime.store.pool import Pool
from tapgate_client.schemas.nodes import NodeRole

_UPDATE_SECONDS: Final = 2.0
_QUEUE_LENGTH_TEXT: Final = "Commands that wait for the next ledger batch"


class ProcessMetrics:
    """Each worker's state, which it updates regularly so that all workers can report the sum.

    `pools` are the process's connection pools. `get_ledger_queue_length` is None in a process
    without a ledger.
    """

    def __init__(
        self,
        settings: Settings,
        role: NodeRole,
        pools: Mapping[str, Pool],
        throttle: Throttle,
        get_ledger_queue_length: Callable[[], int] | None = None,
    ) -> None:
        self._role, self._pools, self._throttle = role, pools, throttle
        self._get_ledger_queue_length = get_ledger_queue_length
        self._data_dir = get_shared_folder(settings.data_dir)
        labels, series = ["pool"], [(name,) for name in pools]
        self._workers = Gauge("tapgate_workers", "The service's worker processes on the node")
        self._ledger_queue = Gauge("tapgate_ledger_queue_length", _QUEUE_LENGTH_TEXT)
        #: In `PoolState` field order.
        self._connections = [
            Gauge(f"tapgate_database_pool_{name}", text, labels, series)
            for name, text in (
                ("size", "Database connections that a pool may open"),
                ("open", "Open database connections per pool"),
                ("in_use", "Database connections in use per pool"),
                ("waiting", "Callers that wait for a database connection"),
            )
        ]
        self._waits = Counter(
            "tapgate_database_pool_waits", "Waits for a database connection", labels, series
        )
        self._wait_seconds = Counter(
            "tapgate_database_pool_wait_seconds",
            "Seconds that callers waited for a database connection",
            labels,
            series,
        )
        #: Each pool's waits that are already counted.
        self._counted_waits = [(0, 0.0)] * len(series)
        families = [self._workers, *self._connections, self._waits, self._wait_seconds]
        if get_ledger_queue_length is not None:
            families.append(self._ledger_queue)
        self._shared = SharedMetrics(self._data_dir / f"{role}-process", families)

    async def run(self) -> NoReturn:
        await run_periodically(self.update, every=_UPDATE_SECONDS, name="process_metrics")

    async def update(self) -> None:
        self._workers.set(1)
        if self._get_ledger_queue_length is not None:
            self._ledger_queue.set(self._get_ledger_queue_length())
        for index, pool in enumerate(self._pools.values()):
            for gauge, value in zip(self._connections, pool.get_state(), strict=True):
                gauge.set(value, index)
            count, seconds = self._counted_waits[index]
            self._waits.add(index, pool.wait_count - count)
            self._wait_seconds.add(index, pool.wait_seconds - seconds)
            self._counted_waits[index] = pool.wait_count, pool.wait_seconds
        self._shared.mark_gauges_updated()

    def collect(self) -> Iterator[Metric | RenderedFamily]:
        build = GaugeMetricFamily(
            "tapgate_build_info",
            "Service version; the value is always 1",
            labels=["version", "python", "service"],
        )
        build.add_metric([VERSION, platform.python_version(), self._role], 1)
        yield build
        disk = shutil.disk_usage(self._data_dir)
        yield GaugeMetricFamily(
            "tapgate_disk_free_bytes", "Free bytes on the data folder's disk", value=disk.free
        )
        yield GaugeMetricFamily(
            "tapgate_disk_size_bytes", "Size of the data folder's disk", value=disk.total
        )
        is_reachable = self._throttle.is_cache_reachable
        if is_reachable is not None:
            yield GaugeMetricFamily(
                "tapgate_cache_reachable",
                "Whether the latest request to the cache of rate limits succeeded",
                value=is_reachable,
            )
        yield from self._shared.collect()

    def close(self) -> None:
        self._shared.mark_gauges_updated()
        self._shared.close()
