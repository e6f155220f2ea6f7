"""Counters, gauges and histograms that a node's worker processes share.

Each worker keeps its numbers in its own file. A replacement worker takes over a dead worker's file,
so counters decrease only when the file layout changes, such as in an upgrade. If a worker has
stopped updating its gauges, they are ignored.

An installation has thousands of time series. Everything but their values is therefore rendered only
once, which makes a scrape twenty times cheaper than with `prometheus_client`.
"""

import operator
import time
import zlib
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property, reduce
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

from prometheus_client.utils import floatToGoString

from tapgate.runtime.node_files import WorkerFile

#: A worker updates its gauges more often than this.
_MAX_GAUGE_AGE_SECONDS: Final = 10.0
#: A file's first cell is the time at which the worker last updated its gauges.
_HEADER_CELLS: Final = 1

#: Label values for each time series in a family.
Series = Sequence[tuple[str, ...]]


class RenderedFamily(NamedTuple):
    """Metric family in the Prometheus text format."""

    text: str


class Family(ABC):
    """Time series of one metric, each with its cells in the worker's file.

    With `variants`, each of `series` has one time series per variant, which is its last label.
    """

    kind: str
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
        # Not yet in a file: numbers are kept, but not reported.
        self._cells = memoryview(bytearray(8 * self.size)).cast("d")
        self._start = 0

    def bind(self, cells: "memoryview[float]", start: int) -> None:
        """Store the family's numbers in these cells from now on."""
        self._cells, self._start = cells, start

    @property
    def layout(self) -> str:
        """Text that differs if the meaning of any cell differs."""
        return "\n".join([self.name, *map("\t".join, self._series), *self._variants])

    def render(self, cells: Sequence[float]) -> RenderedFamily:
        """Render the family, given all workers' cells, summed."""
        return RenderedFamily("".join([self._head, *self._render_samples(cells)]))

    @abstractmethod
    def _render_samples(self, cells: Sequence[float]) -> Iterator[str]:
        """Yield the sample lines."""

    @cached_property
    def _head(self) -> str:
        name = self._sample_name
        return f"# HELP {name} {self._text}\n# TYPE {name} {self.kind}\n"

    @property
    def _sample_name(self) -> str:
        return self.name

    @cached_property
    def _prefixes(self) -> Sequence[str]:
        """Each time series's name and labels."""
        return [_render_prefix(self._sample_name, self._labels, values) for values in self._all()]

    def _all(self) -> Series:
        if not self._variants:
            return self._series
        return [(*labels, variant) for labels in self._series for variant in self._variants]


class Counter(Family):
    """Counters. A series with several labels is reported from its first count on."""

    kind = "counter"

    def add(self, series: int = 0, amount: float = 1.0) -> None:
        self._cells[self._start + series] += amount

    @property
    def _sample_name(self) -> str:
        return f"{self.name}_total"

    def _render_samples(self, cells: Sequence[float]) -> Iterator[str]:
        is_complete = len(self._labels) < 2
        for prefix, value in zip(self._prefixes, cells, strict=True):
            if value or is_complete:
                yield f"{prefix} {_format(value)}\n"


class Gauge(Family):
    """Gauges, summed over the workers."""

    kind = "gauge"

    def set(self, value: float, series: int = 0) -> None:
        self._cells[self._start + series] = value

    def _render_samples(self, cells: Sequence[float]) -> Iterator[str]:
        for prefix, value in zip(self._prefixes, cells, strict=True):
            yield f"{prefix} {_format(value)}\n"


class Histogram(Family):
    """Histograms with common bucket bounds. A series is reported from its first value on."""

    kind = "histogram"

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

    def _render_samples(self, cells: Sequence[float]) -> Iterator[str]:
        for index, prefixes in enumerate(self._series_prefixes):
            start = index * self.cells_per_series
            *counts, total = cells[start : start + self.cells_per_series]
            if any(counts):
                cumulative = [*accumulate(counts)]
                for prefix, value in zip(
                    prefixes, (*cumulative, cumulative[-1], total), strict=True
                ):
                    yield f"{prefix} {_format(value)}\n"

    @cached_property
    def _series_prefixes(self) -> Sequence[Sequence[str]]:
        """Names and labels of each series's buckets, count and sum."""
        bounds, labels = [*map(str, self._bounds), "+Inf"], [*self._labels, "le"]
        return [
            [
                *(_render_prefix(f"{self.name}_bucket", labels, (*one, bound)) for bound in bounds),
                _render_prefix(f"{self.name}_count", self._labels, one),
                _render_prefix(f"{self.name}_sum", self._labels, one),
            ]
            for one in self._series
        ]


def _render_prefix(name: str, labels: Sequence[str], values: Sequence[str]) -> str:
    pairs = [
        f'{label}="{_escape(value)}"' for label, value in sorted(zip(labels, values, strict=True))
    ]
    return f"{name}{{{','.join(pairs)}}}" if pairs else name


def _format(value: float) -> str:
    # Only large values differ from Python's format.
    return repr(value) if abs(value) < 1e6 else str(floatToGoString(value))  # type: ignore[no-untyped-call]


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


class SharedMetrics:
    """Prometheus collector for metric families whose numbers the workers keep in a folder."""

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

    def collect(self) -> Iterator[RenderedFamily]:
        files = list(self._file.read_all())
        since = time.time() - _MAX_GAUGE_AGE_SECONDS
        current_files = [cells for cells in files if cells[0] >= since]
        start = _HEADER_CELLS
        for family in self._families:
            end = start + family.size
            sources = current_files if isinstance(family, Gauge) else files
            yield family.render(
                reduce(_add_cells, [cells[start:end] for cells in sources], [0.0] * family.size)
            )
            start = end

    def close(self) -> None:
        self._file.close()


def _add_cells(first: Sequence[float], second: Sequence[float]) -> Sequence[float]:
    return list(map(operator.add, first, second))
