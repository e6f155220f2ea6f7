"""Prometheus metrics that are the sum over all workers of the node.

Each worker counts in a memory-mapped file of its own and holds a lock on it, so counting takes no
lock and no system call. A worker that starts goes on with the file of one that has died: numbers
never fall when a worker is killed and replaced, and there are never more files than workers.
"""

import mmap
import os
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from tapgate.edge.node_files import allocate
from tapgate.errors import TABLE
from tapgate.store.file_lock import FileLock

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: The row of requests to no endpoint: the last one.
UNMATCHED = -1

#: The client was gone before it could be answered.
DISCONNECTED = 499

_STATUSES = sorted(
    {status for status, _ in TABLE.values()} | {200, 201, 202, 204, 304, DISCONNECTED}
)
_STATUS_CELL = {status: cell for cell, status in enumerate(_STATUSES)}
_OTHER_STATUS_CELL = len(_STATUSES)
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_FIRST_BUCKET = _OTHER_STATUS_CELL + 1
_SUM = _FIRST_BUCKET + len(_BOUNDS) + 1
_ROW = _SUM + 1

_MOST_WORKERS = 1024


class Metrics:
    """Counts answers per row: one row per endpoint, by its method and template."""

    def __init__(self, folder: Path, rows: Sequence[tuple[str, str]]) -> None:
        self._folder = folder / "metrics"
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._rows = [*rows, ("", "unmatched")]
        self._layout = float(zlib.crc32(repr((self._rows, _STATUSES, _BOUNDS)).encode()))
        self._size = 8 * (1 + _ROW * len(self._rows))
        self._lock = self._claim()
        self._map = mmap.mmap(self._lock.fileno(), self._size)
        self._cells = memoryview(self._map).cast("d")
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def count(self, row: int, status: int, seconds: float) -> None:
        cells, first = self._cells, 1 + (row % len(self._rows)) * _ROW
        cells[first + _STATUS_CELL.get(status, _OTHER_STATUS_CELL)] += 1
        cells[first + _FIRST_BUCKET + bisect_left(_BOUNDS, seconds)] += 1
        cells[first + _SUM] += seconds

    def exposition(self) -> bytes:
        return generate_latest(self.registry)

    def collect(self) -> Iterable[Metric]:
        cells = self._sum_of_workers()
        requests = CounterMetricFamily(
            "tapgate_http_requests", "Answered requests", labels=["method", "endpoint", "status"]
        )
        durations = HistogramMetricFamily(
            "tapgate_http_request_seconds", "From headers to answer", labels=["method", "endpoint"]
        )
        for number, labels in enumerate(self._rows):
            row = cells[1 + number * _ROW : 1 + (number + 1) * _ROW]
            if any(row):
                _add_row(requests, durations, list(labels), row)
        return [requests, durations]

    def close(self) -> None:
        self._cells.release()
        self._map.close()
        self._lock.release()

    def _claim(self) -> FileLock:
        """The first file that no living worker counts in, emptied if it is of other endpoints."""
        for number in range(_MOST_WORKERS):
            path = self._folder / f"{number}.counts"
            lock = FileLock(path)
            if lock.take():
                if self._counted_in(path) is None:
                    os.truncate(lock.fileno(), 0)
                    allocate(lock.fileno(), self._size)
                    os.pwrite(lock.fileno(), array("d", [self._layout]).tobytes(), 0)
                return lock
        raise RuntimeError("too many workers count in this folder")

    def _counted_in(self, path: Path) -> Sequence[float] | None:
        cells = array("d")
        data = path.read_bytes()
        if len(data) != self._size:
            return None
        cells.frombytes(data)
        return cells if cells[0] == self._layout else None

    def _sum_of_workers(self) -> Sequence[float]:
        total: Sequence[float] = [0.0] * (self._size // 8)
        for path in self._folder.glob("*.counts"):
            counted = self._counted_in(path)
            if counted is not None:
                total = [one + other for one, other in zip(total, counted, strict=True)]
        return total


def _add_row(
    requests: CounterMetricFamily,
    durations: HistogramMetricFamily,
    labels: list[str],
    row: Sequence[float],
) -> None:
    for status, cell in [*_STATUS_CELL.items(), ("other", _OTHER_STATUS_CELL)]:
        if row[cell]:
            requests.add_metric([*labels, str(status)], row[cell])
    buckets: list[tuple[str, float]] = []
    below = 0.0
    for position, bound in enumerate([*map(str, _BOUNDS), "+Inf"]):
        below += row[_FIRST_BUCKET + position]
        buckets.append((bound, below))
    durations.add_metric(labels, buckets, sum_value=row[_SUM])
