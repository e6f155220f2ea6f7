"""Table of numbers in a memory-mapped file, shared by all processes on a node."""

import fcntl
import hashlib
import mmap
import os
from functools import lru_cache
from pathlib import Path

from tapgate.runtime.node_files import allocate

_CELL_BYTES = 8


class NodeTable:
    """Set-associative table of fixed size: a key may occupy any place in one small set.

    One byte in the file serves as a set's lock. The kernel releases the lock when its holder dies.
    Every write is eight bytes, so a killed process leaves no half-written number.
    """

    SET_COUNT = 8192

    def __init__(self, path: Path, *, cells_per_set: int) -> None:
        size = self.SET_COUNT * cells_per_set * _CELL_BYTES
        self._cells_per_set = cells_per_set
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        allocate(self._file, size)
        self._map = mmap.mmap(self._file, size)
        self._cells = memoryview(self._map).cast("q")
        self._locate_key = lru_cache(maxsize=4096)(self._compute_location)

    def close(self) -> None:
        self._cells.release()
        self._map.close()
        os.close(self._file)

    def _lock(self, set_start: int) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, set_start)

    def _unlock(self, set_start: int) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, set_start)

    def _compute_location(self, key: str) -> tuple[int, int]:
        """Return a key's tag and the index of its set's first cell."""
        digest = hashlib.blake2b(key.encode(), digest_size=16).digest()
        set_index = int.from_bytes(digest[8:]) % self.SET_COUNT
        return int.from_bytes(digest[:8], signed=True) or 1, set_index * self._cells_per_set
