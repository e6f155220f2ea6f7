"""Rate limits per credential or address.

All processes on a node share the limits. Nodes that use a common cache share them too.
"""

import contextlib
from functools import lru_cache
from typing import TYPE_CHECKING

from tapgate.core.settings import Settings
from tapgate.http.rate_limits.leased_buckets import LeasedBuckets
from tapgate.http.rate_limits.token_buckets import (
    MICROSECONDS_PER_SECOND,
    CacheUnavailableError,
    NodeBuckets,
    RateLimit,
    RateLimitResult,
)
from tapgate.http.rate_limits.token_leases import NodeLeases
from tapgate.runtime.node_files import get_shared_folder
from tapgate_client.errors import ApiError, Code

if TYPE_CHECKING:
    from tapgate.http.rate_limits.cache_buckets import CacheBuckets


def build_rate_limit_error(result: RateLimitResult, message: str | None = None) -> ApiError:
    seconds = -(-result.retry_in_us // MICROSECONDS_PER_SECOND)
    return ApiError(Code.RATE_LIMITED, message, headers={"Retry-After": str(seconds)})


class Throttle:
    """Rate limiter that uses the cache, or the node's buckets if no cache is reachable."""

    def __init__(self, settings: Settings) -> None:
        self.default_limit = RateLimit(settings.rate_limit, settings.rate_burst)
        folder = get_shared_folder(settings.data_dir)
        self.node_buckets = NodeBuckets(folder / "buckets", self.default_limit)
        self.cache_buckets = self._create_cache_buckets(settings.cache_url)
        self.leased_buckets: LeasedBuckets | None = None
        if self.cache_buckets is not None:
            self.leased_buckets = LeasedBuckets(self.cache_buckets, NodeLeases(folder / "leases"))
        self._get_custom_limit = lru_cache(maxsize=1024)(RateLimit)

    def get_limit(self, per_second: int | None, burst: int | None) -> RateLimit:
        """Return a rate limit. Values that are not set default to the platform's."""
        if per_second is None and burst is None:
            return self.default_limit
        return self._get_custom_limit(
            per_second or self.default_limit.per_second, burst or self.default_limit.burst
        )

    async def take(self, key: str, rate: RateLimit | None = None) -> RateLimitResult:
        """Try to take one token from a bucket. `rate` defaults to the platform's rate limit.

        The limit is exact across nodes while the cache is available.
        """
        if self.cache_buckets is not None and self.cache_buckets.is_available:
            with contextlib.suppress(CacheUnavailableError):
                return await self.cache_buckets.take(key, rate)
        return self.node_buckets.take(key, rate)

    def take_on_node(self, key: str, rate: RateLimit) -> RateLimitResult:
        """Try to take one token from this node's bucket, even if there is a cache."""
        return self.node_buckets.take(key, rate)

    async def take_leased(self, key: str, rate: RateLimit | None = None) -> RateLimitResult:
        """Try to take one token, from this node's leased tokens if the bucket is busy.

        Each node may exceed the limit by `RateLimit.max_lease`. Do not use it for limits that
        protect credentials.
        """
        if self.leased_buckets is not None and self.leased_buckets.is_available:
            result = self.leased_buckets.take(key, rate or self.default_limit)
            if result is not None:
                return result
        return await self.take(key, rate)

    async def refund(self, key: str, rate: RateLimit | None = None) -> None:
        """Put a token back. It is lost if the cache has since become unavailable or recovered."""
        if self.cache_buckets is None or not self.cache_buckets.is_available:
            self.node_buckets.refund(key, rate)
            return
        with contextlib.suppress(CacheUnavailableError):
            await self.cache_buckets.refund(key, rate)

    @property
    def is_cache_reachable(self) -> bool | None:
        """Whether the latest request to the cache succeeded. None if there is no cache."""
        return None if self.cache_buckets is None else self.cache_buckets.is_available

    async def list_warnings(self) -> list[str]:
        """Return a startup warning for the operator if the cache is unreachable."""
        if self.cache_buckets is None:
            return []
        try:
            await self.cache_buckets.require_reachable()
        except CacheUnavailableError as error:
            return [
                f"Warning: TAPGATE_CACHE_URL cannot be reached ({error}). Until it is"
                " reachable, each node enforces rate limits separately."
            ]
        return []

    def _create_cache_buckets(self, url: str | None) -> "CacheBuckets | None":
        if url is None:
            return None
        # Imported here: the import is slow, and most installations use no cache.
        from tapgate.http.rate_limits.cache_buckets import CacheBuckets  # noqa: PLC0415

        return CacheBuckets(url, self.default_limit)

    async def close(self) -> None:
        self.node_buckets.close()
        if self.leased_buckets is not None:
            await self.leased_buckets.close()
        if self.cache_buckets is not None:
            await self.cache_buckets.close()
