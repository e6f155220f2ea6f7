"""Prometheus metrics for a node's health: readiness, clock, registered nodes and replication."""

from collections import Counter
from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from tapgate.runtime.health import HealthMonitor
from tapgate.runtime.nodes import NodeRegistry
from tapgate.runtime.store.server_status import LongSnapshot
from tapgate_client.schemas.health import ReplicationMode
from tapgate_client.schemas.nodes import NodeRole


def _build_snapshot_metric(snapshot: LongSnapshot | None) -> Metric:
    metric = GaugeMetricFamily(
        "tapgate_database_long_snapshot_seconds",
        "Age of the oldest snapshot that a session has held for over a minute",
        labels=["application", "user"],
    )
    if snapshot is not None:
        metric.add_metric([snapshot.application, snapshot.user], snapshot.seconds)
    return metric


class HealthMetrics:
    """Collects check results, which a scrape brings up to date like a request to `/ready`."""

    def __init__(self, health: HealthMonitor, registry: NodeRegistry) -> None:
        self._health = health
        self._registry = registry

    async def update(self) -> None:
        await self._health.get_status()

    def collect(self) -> Iterable[Metric]:
        status = self._health.latest
        if status is None:  # no check yet
            return
        is_ready = status.is_healthy and not self._health.is_draining
        yield GaugeMetricFamily(
            "tapgate_ready", "Whether the node can process requests", value=is_ready
        )
        if status.server is not None:
            yield GaugeMetricFamily(
                "tapgate_clock_offset_seconds",
                "Seconds by which the node's clock is ahead of the database's",
                value=status.server.clock_offset,
            )
            replication = status.server.replication
            modes = GaugeMetricFamily(
                "tapgate_database_replication",
                "Database replication state: 1 for the current mode",
                labels=["mode"],
            )
            for mode in ReplicationMode:
                modes.add_metric([mode], mode == replication.mode)
            yield modes
            if replication.synchronous_standbys is not None:
                yield GaugeMetricFamily(
                    "tapgate_database_synchronous_standbys",
                    "Synchronous standbys that confirm commits",
                    value=replication.synchronous_standbys,
                )
            yield _build_snapshot_metric(status.server.long_snapshot)
        yield from self._collect_nodes()

    def _collect_nodes(self) -> Iterable[Metric]:
        counts = Counter(node.role for node in self._registry.online_nodes)
        nodes = GaugeMetricFamily("tapgate_nodes", "Online nodes", labels=["role"])
        for role in NodeRole:
            nodes.add_metric([role], counts[role])
        yield nodes
        yield GaugeMetricFamily(
            "tapgate_node_setting_differences",
            "Settings in which this node differs from most nodes",
            value=len(self._registry.list_differences()),
        )
