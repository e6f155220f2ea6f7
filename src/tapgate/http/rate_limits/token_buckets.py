"""Token buckets, each stored as one number: the time at which the bucket is full again.

A bucket gains one token per period and holds at most `burst` tokens. The time at which it is full
is in the past or at most `burst` periods ahead. Taking a token moves that time one period ahead.
Times are integers, in microseconds.
"""

import time
from pathlib import Path
from typing import NamedTuple

from tapgate.runtime.node_table import NodeTable

MICROSECONDS_PER_SECOND = 1_000_000
#: A smaller lease would save no cache calls.
MIN_LEASE = 4


class CacheUnavailableError(Exception):
    """The cache with the shared buckets cannot be used. The message is the error's class name."""


class RateLimitResult(NamedTuple):
    """Result from trying to take a token. Times are in microseconds from now."""

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
        lease = int(min(burst / 8, per_second / 4))
        #: Tokens from a shared bucket that a node may hold in advance; 0 if too few to be useful.
        self.max_lease = lease if lease >= MIN_LEASE else 0

    def build_result(self, allowed: bool, full_in: int) -> RateLimitResult:
        retry_in = 0 if allowed else full_in + self.period_us - self.window_us
        remaining = max(0, self.window_us - full_in) // self.period_us
        return RateLimitResult(allowed, remaining, full_in, retry_in, self.limit)


class NodeBuckets(NodeTable):
    """Token buckets shared by all processes on this node.

    Every write leaves a valid state, so a killed process cannot corrupt the table. A full set
    evicts the bucket that is closest to full, which loses the least information.

    Times are from the monotonic clock, which all processes share and which restarts at boot. A time
    beyond a bucket's window is stale, from an earlier boot or a former rate, and the bucket counts
    as full. Buckets with different rates share the table, but a key must always be used with the
    same rate.
    """

    WAYS = 8
    #: No bucket takes longer to fill. A time further ahead is stale, from an earlier boot.
    _MAX_WINDOW = 30 * 24 * 3600 * MICROSECONDS_PER_SECOND

    def __init__(self, path: Path, rate: RateLimit) -> None:
        self._default_limit = rate
        super().__init__(path, cells_per_set=2 * self.WAYS)

    def take(self, key: str, rate: RateLimit | None = None) -> RateLimitResult:
        tag, set_start = self._locate_key(key)
        self._lock(set_start)
        try:
            return self._take(
                tag, set_start, time.monotonic_ns() // 1000, rate or self._default_limit
            )
        finally:
            self._unlock(set_start)

    def refund(self, key: str, rate: RateLimit | None = None) -> None:
        """Put a taken token back into its bucket."""
        tag, set_start = self._locate_key(key)
        self._lock(set_start)
        try:
            self._cells[self._find_or_create_cell(tag, set_start)] -= (
                rate or self._default_limit
            ).period_us
        finally:
            self._unlock(set_start)

    def _take(self, tag: int, set_start: int, now: int, rate: RateLimit) -> RateLimitResult:
        cells = self._cells
        latest = now + rate.window_us
        cell = self._find_or_create_cell(tag, set_start)
        full_at = cells[cell]
        if not now < full_at <= latest:
            full_at = now
        next_full_at = full_at + rate.period_us
        if next_full_at > latest:
            return rate.build_result(False, full_at - now)
        cells[cell] = next_full_at
        return rate.build_result(True, next_full_at - now)

    def _find_or_create_cell(self, tag: int, set_start: int) -> int:
        """Return the cell index for the bucket's time. A new key gets a full bucket."""
        cells, ways = self._cells, self.WAYS
        if cells[set_start] == tag:
            return set_start + ways  # fast path: most sets contain one key, in the first slot
        tags = cells[set_start : set_start + ways].tolist()
        if tag in tags:
            return set_start + ways + tags.index(tag)
        times_at = set_start + ways
        times = cells[times_at : times_at + ways].tolist()
        latest = time.monotonic_ns() // 1000 + self._MAX_WINDOW
        valid_times = [full_at if full_at <= latest else 0 for full_at in times]
        way = valid_times.index(min(valid_times))
        cells[set_start + way] = tag
        cells[times_at + way] = 0
        return times_at + way
