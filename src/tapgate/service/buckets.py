"""Token buckets, kept as one number each: the moment at which the bucket is full again.

A bucket that fills by one token per period and holds `burst` of them is full at some moment in the
past, or at most `burst` periods from now; taking a token moves that moment one period on. One
whole number of microseconds is all there is to store, to share and to lose.
"""

import fcntl
import hashlib
import mmap
import os
import time
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tapgate.service.node_files import allocate

SECOND = 1_000_000


class CacheAwayError(Exception):
    """The buckets that the nodes share cannot be reached."""


class Taken(NamedTuple):
    """The result of one attempt to take a token. Times are in microseconds from now."""

    allowed: bool
    remaining: int
    full_in: int
    retry_in: int
    limit: int  # tokens per second


class Rate:
    def __init__(self, per_second: float, burst: int) -> None:
        self.per_second = per_second
        self.burst = burst
        self.limit = int(per_second)
        self.period = max(1, round(SECOND / per_second))
        self.window = burst * self.period

    def taken(self, allowed: bool, full_in: int) -> Taken:
        retry_in = 0 if allowed else full_in + self.period - self.window
        remaining = max(0, self.window - full_in) // self.period
        return Taken(allowed, remaining, full_in, retry_in, self.limit)


class NodeBuckets:
    """The buckets that all processes of this node share: a memory-mapped table of fixed size.

    A key may be in any slot of one small set, and a byte of the file is that set's lock. The
    kernel gives the lock back when its holder dies, and there is no state between two writes of
    eight bytes, so a killed process leaves nothing behind. A set that is full forgets the bucket
    that is nearest to full: the one about which there is least to remember.

    The clock is the machine's, the same for every process, and restarts when it boots. A moment
    that no bucket can have now is from an earlier boot or another rate: the bucket counts as full.
    Buckets of different rates share the table; a key always comes with the same rate.
    """

    _SETS = 8192
    _WAYS = 8
    _CELL = 8
    _SIZE = _SETS * _WAYS * 2 * _CELL
    #: No bucket needs longer to fill: a later moment is a leftover of an earlier boot.
    _MAX_WINDOW = 30 * 24 * 3600 * SECOND

    def __init__(self, path: Path, rate: Rate) -> None:
        self._rate = rate
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        allocate(self._file, self._SIZE)
        self._map = mmap.mmap(self._file, self._SIZE)
        self._cells = memoryview(self._map).cast("q")
        self._place = lru_cache(maxsize=4096)(self._hashed)

    def take(self, key: str, rate: Rate | None = None) -> Taken:
        tag, tags_at = self._place(key)
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, tags_at)
        try:
            return self._take(tag, tags_at, time.monotonic_ns() // 1000, rate or self._rate)
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, tags_at)

    def give_back(self, key: str, rate: Rate | None = None) -> None:
        """Return a token that was taken."""
        tag, tags_at = self._place(key)
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, tags_at)
        try:
            self._cells[self._way_of(tag, tags_at)] -= (rate or self._rate).period
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, tags_at)

    def close(self) -> None:
        self._cells.release()
        self._map.close()
        os.close(self._file)

    def _hashed(self, key: str) -> tuple[int, int]:
        """What stands for the key in the table, and where its set begins."""
        digest = hashlib.blake2b(key.encode(), digest_size=16).digest()
        chosen = int.from_bytes(digest[8:]) % self._SETS
        return int.from_bytes(digest[:8], signed=True) or 1, chosen * self._WAYS * 2

    def _take(self, tag: int, tags_at: int, now: int, rate: Rate) -> Taken:
        cells = self._cells
        latest = now + rate.window
        way = self._way_of(tag, tags_at)
        full_at = cells[way]
        if not now < full_at <= latest:
            full_at = now
        after = full_at + rate.period
        if after > latest:
            return rate.taken(False, full_at - now)
        cells[way] = after
        return rate.taken(True, after - now)

    def _way_of(self, tag: int, tags_at: int) -> int:
        """The cell of the bucket's moment; a key that is not in the table gets one, and is full."""
        cells, ways = self._cells, self._WAYS
        if cells[tags_at] == tag:
            return tags_at + ways  # most sets have one key, which is the first
        tags = cells[tags_at : tags_at + ways].tolist()
        if tag in tags:
            return tags_at + ways + tags.index(tag)
        moments_at = tags_at + ways
        moments = cells[moments_at : moments_at + ways].tolist()
        latest = time.monotonic_ns() // 1000 + self._MAX_WINDOW
        known = [moment if moment <= latest else 0 for moment in moments]
        way = known.index(min(known))
        cells[tags_at + way] = tag
        cells[moments_at + way] = 0
        return moments_at + way
