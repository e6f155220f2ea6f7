"""Latency samples from recent ledger batches and money requests, from all workers on the node.

Samples older than `RECENT_SECONDS` are ignored. Newer samples from dead workers are included.
"""

import time
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Final, NamedTuple

from tapgate.runtime.node_files import WorkerFile

RECENT_SECONDS: Final = 3600.0
#: Samples kept per worker.
MAX_BATCHES: Final = 512
_MAX_REQUESTS: Final = 1024
_LAYOUT_VERSION: Final = 1.0
_CELLS_PER_SAMPLE: Final = 3


class Sample(NamedTuple):
    at: float
    seconds: float
    size: int


class LatencySamples:
    """Two sample rings, whose cells are overwritten in turn."""

    def __init__(self, folder: Path) -> None:
        count = (MAX_BATCHES + _MAX_REQUESTS) * _CELLS_PER_SAMPLE
        offsets = range(0, count, _CELLS_PER_SAMPLE)
        self._batches, self._requests = offsets[:MAX_BATCHES], offsets[MAX_BATCHES:]
        self._next_batch, self._next_request = cycle(self._batches), cycle(self._requests)
        self._file = WorkerFile(folder / "recent", _LAYOUT_VERSION, count)

    def add_batch(self, size: int, seconds: float) -> None:
        self._add(next(self._next_batch), size, seconds)

    def add_request(self, seconds: float) -> None:
        self._add(next(self._next_request), 1, seconds)

    def list_batches(self) -> list[Sample]:
        return self._list_recent(self._batches)

    def list_requests(self) -> list[Sample]:
        return self._list_recent(self._requests)

    def close(self) -> None:
        self._file.close()

    def _add(self, offset: int, size: int, seconds: float) -> None:
        cells = self._file.values
        cells[offset] = time.time()
        cells[offset + 1] = seconds
        cells[offset + 2] = size

    def _list_recent(self, offsets: range) -> list[Sample]:
        since = time.time() - RECENT_SECONDS
        return [
            sample
            for cells in self._file.read_all()
            for offset in offsets
            if (sample := _read_sample(cells, offset)).at >= since
        ]


def _read_sample(cells: Sequence[float], offset: int) -> Sample:
    return Sample(cells[offset], cells[offset + 1], int(cells[offset + 2]))
