"""Tokens that a node has taken from shared buckets in advance."""

import time
from pathlib import Path
from typing import NamedTuple

from tapgate.http.rate_limits.token_buckets import (
    MICROSECONDS_PER_SECOND,
    MIN_LEASE,
    RateLimit,
    RateLimitResult,
)
from tapgate.runtime.node_table import NodeTable

#: The process that deposited tokens returns unused ones after this time.
RETURN_AFTER_US = MICROSECONDS_PER_SECOND // 2
#: Tokens that were not returned, because their process died, cannot be used after this time.
_EXPIRE_AFTER_US = MICROSECONDS_PER_SECOND
#: Demand is counted in windows this long. A lease is at most the demand in two windows.
_WINDOW_US = MICROSECONDS_PER_SECOND // 4
#: No other process on the node requests a lease on the same bucket in this time.
_REQUEST_TIMEOUT_US = MICROSECONDS_PER_SECOND // 2
#: Delay before the next request while tokens are being returned.
_RETURN_TIMEOUT_US = MICROSECONDS_PER_SECOND // 4
#: Delay before the next request if the shared bucket is nearly empty.
_RETRY_US = MICROSECONDS_PER_SECOND // 40

#: Row cells. Times are monotonic clock microseconds.
_TAG, _TOKENS, _DEPOSITED_AT, _FULL_AT, _BLOCKED_UNTIL, _WINDOW_START, _COUNT, _PREVIOUS = range(8)
_ROW_CELLS = 8


class LeaseRequest(NamedTuple):
    """Tokens to take from a shared bucket. `until` identifies the request."""

    tokens: int
    until: int


class NodeLeases(NodeTable):
    """Leased tokens shared by all processes on this node.

    A process that is killed between two writes may lose leased tokens, but cannot create any. A key
    whose set contains only rows with leases gets none.

    At any time a node holds at most `RateLimit.max_lease` tokens from a bucket, including tokens in
    a request or return in progress: only one is in progress, and if a request took too long, its
    tokens are discarded.
    """

    WAYS = 4

    def __init__(self, path: Path) -> None:
        super().__init__(path, cells_per_set=self.WAYS * _ROW_CELLS)

    def take(self, key: str, rate: RateLimit) -> tuple[RateLimitResult | None, LeaseRequest | None]:
        """Take a leased token; None if there is none. Also return a request for more if needed."""
        tag, set_start = self._locate_key(key)
        self._lock(set_start)
        try:
            now = time.monotonic_ns() // 1000
            row = self._find_or_create_row(tag, set_start, now)
            return (None, None) if row is None else self._take(row, now, rate)
        finally:
            self._unlock(set_start)

    def deposit(self, key: str, request: LeaseRequest, granted: int, full_in: int) -> None:
        """Add granted tokens to a lease. `full_in` is the time until the shared bucket is full."""
        tag, set_start = self._locate_key(key)
        self._lock(set_start)
        try:
            cells, row = self._cells, self._find_row(tag, set_start)
            if row is None or cells[row + _BLOCKED_UNTIL] != request.until:
                return
            now = time.monotonic_ns() // 1000
            if granted:
                tokens = self._get_tokens(row, now)
                cells[row + _TOKENS] = 0
                cells[row + _FULL_AT] = now + full_in
                cells[row + _DEPOSITED_AT] = now
                cells[row + _TOKENS] = tokens + granted
            cells[row + _BLOCKED_UNTIL] = 0 if granted else now + _RETRY_US
        finally:
            self._unlock(set_start)

    def withdraw(self, key: str, *, unused_for_us: int) -> int:
        """End a lease if nothing was deposited for a time. Return the number of unused tokens."""
        tag, set_start = self._locate_key(key)
        self._lock(set_start)
        try:
            cells, row = self._cells, self._find_row(tag, set_start)
            now = time.monotonic_ns() // 1000
            if row is None or now - cells[row + _DEPOSITED_AT] < unused_for_us:
                return 0
            tokens = self._get_tokens(row, now)
            cells[row + _TOKENS] = 0
            if tokens:
                cells[row + _BLOCKED_UNTIL] = now + _RETURN_TIMEOUT_US
            return tokens
        finally:
            self._unlock(set_start)

    def _take(
        self, row: int, now: int, rate: RateLimit
    ) -> tuple[RateLimitResult | None, LeaseRequest | None]:
        cells = self._cells
        demand = self._count_request(row, now)
        tokens = self._get_tokens(row, now)
        left = max(0, tokens - 1)
        target = min(rate.max_lease, 2 * demand)
        request = None
        if (
            demand >= MIN_LEASE
            and 2 * left < target
            and not now < cells[row + _BLOCKED_UNTIL] <= now + _REQUEST_TIMEOUT_US
        ):
            request = LeaseRequest(target - left, now + _REQUEST_TIMEOUT_US)
            cells[row + _BLOCKED_UNTIL] = request.until
        if not tokens:
            return None, request
        cells[row + _TOKENS] = left
        full_in = cells[row + _FULL_AT] - now - left * rate.period_us
        # At least one token is missing: the one that was just taken.
        full_in = min(max(full_in, rate.period_us), rate.window_us)
        return rate.build_result(True, full_in), request

    def _count_request(self, row: int, now: int) -> int:
        """Count a request, and return the demand: the higher count in the last two windows."""
        cells = self._cells
        age = now - cells[row + _WINDOW_START]
        if not 0 <= age < _WINDOW_US:
            cells[row + _PREVIOUS] = cells[row + _COUNT] if 0 <= age < 2 * _WINDOW_US else 0
            cells[row + _COUNT] = 0
            cells[row + _WINDOW_START] = now
        cells[row + _COUNT] += 1
        return max(cells[row + _COUNT], cells[row + _PREVIOUS])

    def _get_tokens(self, row: int, now: int) -> int:
        """Return the usable tokens. A deposit in the future is from an earlier boot."""
        if 0 <= now - self._cells[row + _DEPOSITED_AT] < _EXPIRE_AFTER_US:
            return self._cells[row + _TOKENS]
        return 0

    def _find_row(self, tag: int, set_start: int) -> int | None:
        for row in range(set_start, set_start + self.WAYS * _ROW_CELLS, _ROW_CELLS):
            if self._cells[row] == tag:
                return row
        return None

    def _find_or_create_row(self, tag: int, set_start: int, now: int) -> int | None:
        """Return a key's row. A new key replaces the oldest one without tokens, if any."""
        cells = self._cells
        if cells[set_start] == tag:
            return set_start  # fast path: most sets contain one key, in the first row
        row = self._find_row(tag, set_start)
        if row is not None:
            return row
        rows = range(set_start, set_start + self.WAYS * _ROW_CELLS, _ROW_CELLS)
        free = [row for row in rows if not self._get_tokens(row, now)]
        if not free:
            return None
        row = min(free, key=lambda row: cells[row + _WINDOW_START])
        cells[row + _TAG] = 0
        for cell in range(row + 1, row + _ROW_CELLS):
            cells[cell] = 0
        cells[row + _TAG] = tag
        return row
