"""Counters, gauges and histograms that the worker processes of a node share.

Each worker keeps its numbers in its own file. A replacement worker takes over the file of a dead
worker, so counters decrease only when the layout of the file changes, such as in an upgrade. Gauges
of a worker that has stopped updating them are ignored.
"""

import time
import zlib
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from tapgate.runtime.node_files import WorkerFile

#: A worker updates its gauges more often than this.
_MAX_GAUGE_AGE_SECONDS: Final = 10.0
#: The first cell of a file is the time at which the worker last updated its gauges.
_HEADER_CELLS: Final = 1

#: Label values of each time series of a family.
Series = Sequence[tuple[str, ...]]


class Family(ABC):
    """Time series of one metric, each with its cells in the worker's file.

    With `variants`, each of `series` has one time series per variant, which is its last label.
    """

    cells_per_series = 1

    def __init__(
        self,
        name: str,
        text: str,
        labels: Sequence[str] = (),
        series: Series = ((),),
        variants: Sequence[str] = (),
    ) -> None:
        self.name, self._text, self._labels = name, text, labels
        self._series, self._variants = series, variants
        self.size = self.cells_per_series * len(series) * max(1, len(variants))
        self._cells: memoryview[float]
        self._start: int

    def bind(self, cells: "memoryview[float]", start: int) -> None:
        """Store the family's numbers in these cells."""
        self._cells, self._start = cells, start

    @property
    def layout(self) -> str:
        """Text that differs if the meaning of any cell differs."""
        return "\n".join([self.name, *map("\t".join, self._series), *self._variants])

    @abstractmethod
    def collect(self, cells: Sequence[float]) -> Metric:
        """Return the metric, given the sum of the cells of all workers."""


class Counter(Family):
    """Counters. A series with several labels is reported from its first count on."""

    def add(self, series: int = 0, amount: float = 1.0) -> None:
        self._cells[self._start + series] += amount

    def collect(self, cells: Sequence[float]) -> Metric:
        family = CounterMetricFamily(self.name, self._text, labels=self._labels)
        series = self._series
        if self._variants:
            series = [(*labels, variant) for labels in series for variant in self._variants]
        for labels, value in zip(series, cells, strict=True):
            if value or len(self._labels) < 2:
                family.add_metric(labels, value)
        return family


class Gauge(Family):
    """Gauges, summed over the workers."""

    def set(self, value: float, series: int = 0) -> None:
        self._cells[self._start + series] = value

    def collect(self, cells: Sequence[float]) -> Metric:
        family = GaugeMetricFamily(self.name, self._text, labels=self._labels)
        for labels, value in zip(self._series, cells, strict=True):
            family.add_metric(labels, value)
        return family


class Histogram(Family):
    """Histograms with common bucket bounds. A series is reported from its first value on."""

    def __init__(
        self,
        name: str,
        text: str,
        bounds: Sequence[float],
        labels: Sequence[str] = (),
        series: Series = ((),),
    ) -> None:
        self._bounds = bounds
        self.cells_per_series = len(bounds) + 2  # with the bucket above all bounds, and the sum
        super().__init__(name, text, labels, series)

    @property
    def layout(self) -> str:
        return f"{super().layout}\n{self._bounds}"

    def observe(self, value: float, series: int = 0) -> None:
        cells, start = self._cells, self._start + series * self.cells_per_series
        cells[start + bisect_left(self._bounds, value)] += 1
        cells[start + len(self._bounds) + 1] += value

    def collect(self, cells: Sequence[float]) -> Metric:
        family = HistogramMetricFamily(self.name, self._text, labels=self._labels)
        for index, labels in enumerate(self._series):
            start = index * self.cells_per_series
            *counts, total = cells[start : start + self.cells_per_series]
            if any(counts):
                family.add_metric(labels, self._accumulate(counts), sum_value=total)
        return family

    def _accumulate(self, counts: Sequence[float]) -> list[tuple[str, float]]:
        buckets: list[tuple[str, float]] = []
        cumulative = 0.0
        for bound, count in zip([*map(str, self._bounds), "+Inf"], counts, strict=True):
            cumulative += count
            buckets.append((bound, cumulative))
        return buckets


class SharedMetrics:
    """Prometheus collector of metric families whose numbers the workers keep in a folder."""

    def __init__(self, folder: Path, families: Sequence[Family]) -> None:
        self._families = families
        layout = "\n\n".join(family.layout for family in families)
        size = _HEADER_CELLS + sum(family.size for family in families)
        self._file = WorkerFile(folder, float(zlib.crc32(layout.encode())), size)
        self._file.values[0] = 0.0
        start = _HEADER_CELLS
        for family in families:
            family.bind(self._file.values, start)
            start += family.size

    def mark_gauges_updated(self) -> None:
        self._file.values[0] = time.time()

    def collect(self) -> Iterator[Metric]:
        files = list(self._file.read_all())
        since = time.time() - _MAX_GAUGE_AGE_SECONDS
        current_files = [cells for cells in files if cells[0] >= since]
        start = _HEADER_CELLS
        for family in self._families:
            end = start + family.size
            sources = current_files if isinstance(family, Gauge) else files
            parts = [cells[start:end] for cells in sources]
            yield family.collect(
                [sum(cells) for cells in zip([0.0] * family.size, *parts, strict=True)]
            )
            start = end

    def close(self) -> None:
        self._file.close()
