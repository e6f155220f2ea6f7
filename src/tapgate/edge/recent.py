"""How fast it was just now: the newest batches of the ledger, and the newest requests that moved
money, of all workers of the node. What is old, or of a worker that died long ago, does not count.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tapgate.service.node_files import WorkerFile

RECENT_SECONDS: Final = 3600.0
#: The newest of each worker that are remembered.
_BATCHES: Final = 512
_REQUESTS: Final = 1024
_LAYOUT: Final = 1.0
_SAMPLE: Final = 3


class Sample(NamedTuple):
    at: float
    seconds: float
    size: int


class _Ring:
    """A place in the file; the newest sample takes that of the oldest."""

    def __init__(self, first: int, room: int) -> None:
        self.cells = range(first, first + room * _SAMPLE, _SAMPLE)
        self._next = 0

    def place(self) -> int:
        place = self.cells[self._next]
        self._next = (self._next + 1) % len(self.cells)
        return place


class Recent:
    def __init__(self, folder: Path) -> None:
        self._batches = _Ring(0, _BATCHES)
        self._requests = _Ring(_BATCHES * _SAMPLE, _REQUESTS)
        numbers = (_BATCHES + _REQUESTS) * _SAMPLE
        self._file = WorkerFile(folder / "recent", _LAYOUT, numbers)

    def add_batch(self, size: int, seconds: float) -> None:
        self._add(self._batches, size, seconds)

    def add_request(self, seconds: float) -> None:
        self._add(self._requests, 1, seconds)

    def batches(self) -> list[Sample]:
        return self._newest(self._batches)

    def requests(self) -> list[Sample]:
        return self._newest(self._requests)

    def close(self) -> None:
        self._file.close()

    def _add(self, ring: _Ring, size: int, seconds: float) -> None:
        cells, place = self._file.numbers, ring.place()
        cells[place] = time.time()
        cells[place + 1] = seconds
        cells[place + 2] = size

    def _newest(self, ring: _Ring) -> list[Sample]:
        since = time.time() - RECENT_SECONDS
        return [
            sample
            for cells in self._file.of_all()
            for place in ring.cells
            if (sample := _sample(cells, place)).at >= since
        ]


def _sample(cells: Sequence[float], place: int) -> Sample:
    return Sample(cells[place], cells[place + 1], int(cells[place + 2]))
