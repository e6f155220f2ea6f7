"""Prometheus metrics, summed over all workers of the node.

Each worker keeps its counters in its own file. A replacement worker takes over the file of a dead
worker, so counters decrease only when the layout of the file changes, such as in an upgrade.
"""

import zlib
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from tapgate.errors import TABLE
from tapgate.runtime.node_files import WorkerFile

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: Index of the last row, which counts requests that match neither an endpoint nor a site.
UNMATCHED_ROW = -1

#: Status recorded when the client disconnects before its request is complete.
CLIENT_CLOSED_REQUEST = 499

_STATUSES = sorted(
    {status for status, _ in TABLE.values()} | {200, 201, 202, 204, 304, CLIENT_CLOSED_REQUEST}
)
_STATUS_CELLS = {status: cell for cell, status in enumerate(_STATUSES)}
_OTHER_STATUS_CELL = len(_STATUSES)
_BUCKET_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_FIRST_BUCKET_CELL = _OTHER_STATUS_CELL + 1
_SUM_CELL = _FIRST_BUCKET_CELL + len(_BUCKET_BOUNDS) + 1
_CELLS_PER_ROW = _SUM_CELL + 1


#: Delivery statuses of messages sent to phones.
MESSAGE_STATUSES = ("sent", "delivered", "read", "failed")


class Metrics:
    """Request counts and durations per endpoint or site, and counts of message statuses.

    Each of `rows` is the method and path template of an endpoint, or the path prefix of a site.
    """

    def __init__(self, folder: Path, rows: Sequence[tuple[str, str]]) -> None:
        self._rows = [*rows, ("", "unmatched")]
        self._first_message_cell = _CELLS_PER_ROW * len(self._rows)
        self._cell_count = self._first_message_cell + len(MESSAGE_STATUSES)
        layout = repr((self._rows, _STATUSES, _BUCKET_BOUNDS, MESSAGE_STATUSES))
        self._file = WorkerFile(
            folder / "metrics", float(zlib.crc32(layout.encode())), self._cell_count
        )
        self._cells = self._file.values
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def count_request(self, row: int, status: int, seconds: float) -> None:
        cells, row_start = self._cells, (row % len(self._rows)) * _CELLS_PER_ROW
        cells[row_start + _STATUS_CELLS.get(status, _OTHER_STATUS_CELL)] += 1
        cells[row_start + _FIRST_BUCKET_CELL + bisect_left(_BUCKET_BOUNDS, seconds)] += 1
        cells[row_start + _SUM_CELL] += seconds

    def count_message_status(self, status: str) -> None:
        """Count a message that reached this delivery status."""
        self._cells[self._first_message_cell + MESSAGE_STATUSES.index(status)] += 1

    def render(self) -> bytes:
        return generate_latest(self.registry)

    def collect(self) -> Iterable[Metric]:
        cells = self._sum_workers()
        requests = CounterMetricFamily(
            "tapgate_http_requests",
            "HTTP requests by status; 499 if the client disconnected",
            labels=["method", "endpoint", "status"],
        )
        durations = HistogramMetricFamily(
            "tapgate_http_request_seconds",
            "Time from receiving the request headers to the response",
            labels=["method", "endpoint"],
        )
        for index, labels in enumerate(self._rows):
            row = cells[index * _CELLS_PER_ROW : (index + 1) * _CELLS_PER_ROW]
            if any(row):
                _add_row(requests, durations, list(labels), row)
        messages = CounterMetricFamily(
            "tapgate_message_statuses", "Messages by delivery status", labels=["status"]
        )
        for cell, status in enumerate(MESSAGE_STATUSES, self._first_message_cell):
            messages.add_metric([status], cells[cell])
        return [requests, durations, messages]

    def close(self) -> None:
        self._file.close()

    def _sum_workers(self) -> Sequence[float]:
        total: Sequence[float] = [0.0] * self._cell_count
        for cells in self._file.read_all():
            total = [left + right for left, right in zip(total, cells, strict=True)]
        return total


def _add_row(
    requests: CounterMetricFamily,
    durations: HistogramMetricFamily,
    labels: list[str],
    row: Sequence[float],
) -> None:
    for status, cell in [*_STATUS_CELLS.items(), ("other", _OTHER_STATUS_CELL)]:
        if row[cell]:
            requests.add_metric([*labels, str(status)], row[cell])
    buckets: list[tuple[str, float]] = []
    cumulative = 0.0
    for position, bound in enumerate([*map(str, _BUCKET_BOUNDS), "+Inf"]):
        cumulative += row[_FIRST_BUCKET_CELL + position]
        buckets.append((bound, cumulative))
    durations.add_metric(labels, buckets, sum_value=row[_SUM_CELL])
