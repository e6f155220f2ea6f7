"""Rate limits per credential or address, shared by all processes of a node, and by all nodes if
they share a cache."""

import contextlib
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import structlog

from tapgate.service.buckets import CacheAwayError, NodeBuckets, Rate, Taken
from tapgate.service.node_files import shared_folder
from tapgate.settings import Settings

if TYPE_CHECKING:
    from tapgate.service.cache_buckets import CacheBuckets

_log = structlog.get_logger()

_RETRY_AFTER_SECONDS = 1.0


class Caller(Protocol):
    """An authenticated caller, which may have a rate limit of its own."""

    @property
    def rate_limit(self) -> int | None: ...

    @property
    def burst(self) -> int | None: ...


class Throttle:
    """Takes from the cache where there is one, and from this node's buckets while it is away."""

    def __init__(self, settings: Settings) -> None:
        self.rate = Rate(settings.rate_limit, settings.rate_burst)
        self._node = NodeBuckets(shared_folder(settings.data_dir) / "buckets", self.rate)
        self._cache = self._shared(settings.cache_url)
        self._cache_away_until: float | None = None
        self._own_rate = lru_cache(maxsize=1024)(Rate)

    def rate_of(self, caller: Caller) -> Rate:
        """Return the rate limit of a caller: its own or the platform's."""
        if caller.rate_limit is None and caller.burst is None:
            return self.rate
        return self._own_rate(
            caller.rate_limit or self.rate.per_second, caller.burst or self.rate.burst
        )

    async def take(self, key: str, rate: Rate | None = None) -> Taken:
        """Take one token of a bucket, at the platform's rate unless another one is given."""
        if self._cache is None or self._is_away():
            return self._node.take(key, rate)
        try:
            taken = await self._cache.take(key, rate)
        except CacheAwayError as error:
            if self._cache_away_until is None:
                _log.warning("throttle.cache_away", error=str(error))
            self._cache_away_until = time.monotonic() + _RETRY_AFTER_SECONDS
            return self._node.take(key, rate)
        if self._cache_away_until is not None:
            _log.info("throttle.cache_back")
            self._cache_away_until = None
        return taken

    async def give_back(self, key: str, rate: Rate | None = None) -> None:
        """Return a token. If the cache went away since it was taken, the token is lost."""
        if self._cache is None or self._is_away():
            self._node.give_back(key, rate)
            return
        with contextlib.suppress(CacheAwayError):
            await self._cache.give_back(key, rate)

    async def warnings(self) -> list[str]:
        """Return what an operator should know at start: whether the cache can be reached."""
        if self._cache is None:
            return []
        try:
            await self._cache.require_reachable()
        except CacheAwayError as error:
            return [
                f"Warning: TAPGATE_CACHE_URL cannot be reached ({error}). Until it can be,"
                " each node enforces rate limits on its own."
            ]
        return []

    def _shared(self, url: str | None) -> "CacheBuckets | None":
        if url is None:
            return None
        # Here, because most processes have no cache and it takes long to import.
        from tapgate.service.cache_buckets import CacheBuckets  # noqa: PLC0415

        return CacheBuckets(url, self.rate)

    def _is_away(self) -> bool:
        return self._cache_away_until is not None and time.monotonic() < self._cache_away_until

    async def close(self) -> None:
        self._node.close()
        if self._cache is not None:
            await self._cache.close()
