"""Latency samples of recent ledger batches and money requests, from all workers of the node.

Samples older than `RECENT_SECONDS` are ignored. Newer samples of dead workers are included.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tapgate.runtime.node_files import WorkerFile

RECENT_SECONDS: Final = 3600.0
#: Samples kept per worker.
_MAX_BATCHES: Final = 512
_MAX_REQUESTS: Final = 1024
_LAYOUT_VERSION: Final = 1.0
_CELLS_PER_SAMPLE: Final = 3


class Sample(NamedTuple):
    at: float
    seconds: float
    size: int


class _RingBuffer:
    """Region of the file whose samples are overwritten in turn."""

    def __init__(self, first: int, capacity: int) -> None:
        self.cells = range(first, first + capacity * _CELLS_PER_SAMPLE, _CELLS_PER_SAMPLE)
        self._next = 0

    def advance(self) -> int:
        offset = self.cells[self._next]
        self._next = (self._next + 1) % len(self.cells)
        return offset


class LatencySamples:
    def __init__(self, folder: Path) -> None:
        self._batches = _RingBuffer(0, _MAX_BATCHES)
        self._requests = _RingBuffer(_MAX_BATCHES * _CELLS_PER_SAMPLE, _MAX_REQUESTS)
        numbers = (_MAX_BATCHES + _MAX_REQUESTS) * _CELLS_PER_SAMPLE
        self._file = WorkerFile(folder / "recent", _LAYOUT_VERSION, numbers)

    def add_batch(self, size: int, seconds: float) -> None:
        self._add(self._batches, size, seconds)

    def add_request(self, seconds: float) -> None:
        self._add(self._requests, 1, seconds)

    def list_batches(self) -> list[Sample]:
        return self._list_recent(self._batches)

    def list_requests(self) -> list[Sample]:
        return self._list_recent(self._requests)

    def close(self) -> None:
        self._file.close()

    def _add(self, ring: _RingBuffer, size: int, seconds: float) -> None:
        cells, offset = self._file.values, ring.advance()
        cells[offset] = time.time()
        cells[offset + 1] = seconds
        cells[offset + 2] = size

    def _list_recent(self, ring: _RingBuffer) -> list[Sample]:
        since = time.time() - RECENT_SECONDS
        return [
            sample
            for cells in self._file.read_all()
            for offset in ring.cells
            if (sample := _read_sample(cells, offset)).at >= since
        ]


def _read_sample(cells: Sequence[float], offset: int) -> Sample:
    return Sample(cells[offset], cells[offset + 1], int(cells[offset + 2]))
