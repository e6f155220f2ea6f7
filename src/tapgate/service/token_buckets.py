"""Token buckets, each stored as one number: the time at which the bucket is full again.

A bucket gains one token per period and holds `burst` tokens. The time at which it is full is in the
past or at most `burst` periods ahead. Taking a token moves that time one period ahead. The whole
state of a bucket is one integer of microseconds.
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

MICROSECONDS_PER_SECOND = 1_000_000


class CacheUnavailableError(Exception):
    """The cache with the shared buckets is unreachable."""


class RateLimitResult(NamedTuple):
    """Result of an attempt to take a token. Times are in microseconds from now."""

    is_allowed: bool
    remaining: int
    reset_in_us: int
    retry_in_us: int
    limit: int  # tokens per second


class RateLimit:
    def __init__(self, per_second: float, burst: int) -> None:
        self.per_second = per_second
        self.burst = burst
        self.limit = int(per_second)
        self.period_us = max(1, round(MICROSECONDS_PER_SECOND / per_second))
        self.window_us = burst * self.period_us

    def build_result(self, allowed: bool, full_in: int) -> RateLimitResult:
        retry_in = 0 if allowed else full_in + self.period_us - self.window_us
        remaining = max(0, self.window_us - full_in) // self.period_us
        return RateLimitResult(allowed, remaining, full_in, retry_in, self.limit)


class NodeBuckets:
    """Token buckets shared by all processes of this node, in a memory-mapped table of fixed size.

    The table is set-associative: a key may occupy any slot of one small set, and one byte of the
    file serves as the lock of the set. The kernel releases the lock when its holder dies. Every
    write is eight bytes and leaves a valid state, so a killed process cannot corrupt the table. A
    full set evicts the bucket that is closest to full, which loses the least information.

    Times are from the monotonic clock, which all processes share and which restarts at boot. A time
    outside the window of a bucket is left over from an earlier boot or another rate, and the bucket
    counts as full. Buckets of different rates share the table. A key must always be used with the
    same rate.
    """

    _SETS = 8192
    _WAYS = 8
    _CELL = 8
    _SIZE = _SETS * _WAYS * 2 * _CELL
    #: No bucket takes longer to fill. A later time is left over from an earlier boot.
    _MAX_WINDOW = 30 * 24 * 3600 * MICROSECONDS_PER_SECOND

    def __init__(self, path: Path, rate: RateLimit) -> None:
        self._default_limit = rate
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        allocate(self._file, self._SIZE)
        self._map = mmap.mmap(self._file, self._SIZE)
        self._cells = memoryview(self._map).cast("q")
        self._locate_key = lru_cache(maxsize=4096)(self._hash_key)

    def take(self, key: str, rate: RateLimit | None = None) -> RateLimitResult:
        tag, tags_at = self._locate_key(key)
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, tags_at)
        try:
            return self._take(
                tag, tags_at, time.monotonic_ns() // 1000, rate or self._default_limit
            )
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, tags_at)

    def refund(self, key: str, rate: RateLimit | None = None) -> None:
        """Return a token that was taken."""
        tag, tags_at = self._locate_key(key)
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, tags_at)
        try:
            self._cells[self._find_or_create_cell(tag, tags_at)] -= (
                rate or self._default_limit
            ).period_us
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, tags_at)

    def close(self) -> None:
        self._cells.release()
        self._map.close()
        os.close(self._file)

    def _hash_key(self, key: str) -> tuple[int, int]:
        """Return the tag of a key in the table and the first cell of its set."""
        digest = hashlib.blake2b(key.encode(), digest_size=16).digest()
        set_index = int.from_bytes(digest[8:]) % self._SETS
        return int.from_bytes(digest[:8], signed=True) or 1, set_index * self._WAYS * 2

    def _take(self, tag: int, tags_at: int, now: int, rate: RateLimit) -> RateLimitResult:
        cells = self._cells
        latest = now + rate.window_us
        cell = self._find_or_create_cell(tag, tags_at)
        full_at = cells[cell]
        if not now < full_at <= latest:
            full_at = now
        next_full_at = full_at + rate.period_us
        if next_full_at > latest:
            return rate.build_result(False, full_at - now)
        cells[cell] = next_full_at
        return rate.build_result(True, next_full_at - now)

    def _find_or_create_cell(self, tag: int, tags_at: int) -> int:
        """Return the cell with the time of a bucket. A new key gets a cell with a full bucket."""
        cells, ways = self._cells, self._WAYS
        if cells[tags_at] == tag:
            return tags_at + ways  # fast path: most sets contain one key, in the first slot
        tags = cells[tags_at : tags_at + ways].tolist()
        if tag in tags:
            return tags_at + ways + tags.index(tag)
        times_at = tags_at + ways
        times = cells[times_at : times_at + ways].tolist()
        latest = time.monotonic_ns() // 1000 + self._MAX_WINDOW
        valid_times = [full_at if full_at <= latest else 0 for full_at in times]
        way = valid_times.index(min(valid_times))
        cells[tags_at + way] = tag
        cells[times_at + way] = 0
        return times_at + way
