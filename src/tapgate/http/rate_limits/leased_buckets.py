"""Serves requests from leased tokens for busy shared buckets, without a cache request."""

import asyncio
import contextlib
import time
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from tapgate.http.rate_limits.token_buckets import CacheUnavailableError, RateLimit, RateLimitResult
from tapgate.http.rate_limits.token_leases import RETURN_AFTER_US, LeaseRequest, NodeLeases
from tapgate.runtime.background import start_task

if TYPE_CHECKING:
    from tapgate.http.rate_limits.cache_buckets import CacheBuckets

#: Pause between two cache calls, in which requests are collected. A lease is extended when
#: half of it is left, which lasts longer than the pause.
PAUSE_SECONDS = 0.05
#: The same while a busy bucket has no lease.
URGENT_PAUSE_SECONDS = 0.005
_MAX_KEYS_PER_CALL = 100


class _Lease(NamedTuple):
    rate: RateLimit
    return_at: int


class LeasedBuckets:
    """Keeps this node's leases: extends busy ones and returns unused tokens.

    A process extends the leases whose requests it received, and returns what it has deposited.
    """

    def __init__(self, cache_buckets: "CacheBuckets", leases: NodeLeases) -> None:
        self._cache_buckets = cache_buckets
        self._leases = leases
        self.requests: dict[str, tuple[RateLimit, LeaseRequest]] = {}
        #: Leases by key, ordered by return time.
        self.deposited: dict[str, _Lease] = {}
        self._is_urgent = asyncio.Event()
        self._task: asyncio.Task[object] | None = None

    @property
    def is_available(self) -> bool:
        return self._cache_buckets.is_available

    def take(self, key: str, rate: RateLimit) -> RateLimitResult | None:
        """Take a leased token; None if the cache is needed."""
        if not rate.max_lease:
            return None
        result, request = self._leases.take(key, rate)
        if request is not None:
            self.requests[key] = rate, request
            if result is None:
                self._is_urgent.set()
            if self._task is None or self._task.done():
                self._task = start_task(self._run())
        return result

    async def close(self) -> None:
        """Return all unused tokens."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._cache_buckets.is_available:
            with contextlib.suppress(CacheUnavailableError):
                await self._return_tokens(self.deposited, unused_for_us=0)
        self._leases.close()

    async def _run(self) -> None:
        while self.requests or self.deposited:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PAUSE_SECONDS):
                    await self._is_urgent.wait()
                    await asyncio.sleep(URGENT_PAUSE_SECONDS)
            self._is_urgent.clear()
            # Tokens that cannot be returned are lost. Requests that fail are repeated.
            with contextlib.suppress(CacheUnavailableError):
                await self.request_leases()
                await self.return_unused()

    async def request_leases(self) -> None:
        requests, self.requests = self.requests, {}
        keys = iter(requests)
        while batch := list(islice(keys, _MAX_KEYS_PER_CALL)):
            wanted = {key: (requests[key][0], requests[key][1].tokens) for key in batch}
            results = await self._cache_buckets.lease(wanted)
            for key, (granted, full_in) in zip(batch, results, strict=True):
                rate, request = requests[key]
                self._leases.deposit(key, request, granted, full_in)
                if granted:
                    return_at = time.monotonic_ns() // 1000 + RETURN_AFTER_US
                    self.deposited.pop(key, None)
                    self.deposited[key] = _Lease(rate, return_at)

    async def return_unused(self) -> None:
        now, ended = time.monotonic_ns() // 1000, {}
        for key, lease in self.deposited.items():
            if lease.return_at > now:
                break
            ended[key] = lease
        for key in ended:
            del self.deposited[key]
        # If another process has extended a lease since, that process returns it.
        await self._return_tokens(ended, unused_for_us=RETURN_AFTER_US)

    async def _return_tokens(self, leases: dict[str, _Lease], *, unused_for_us: int) -> None:
        keys = iter(leases)
        while batch := list(islice(keys, _MAX_KEYS_PER_CALL)):
            amounts = {
                key: tokens * leases[key].rate.period_us
                for key in batch
                if (tokens := self._leases.withdraw(key, unused_for_us=unused_for_us))
            }
            if amounts:
                await self._cache_buckets.refund_many(amounts)
