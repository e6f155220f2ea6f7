"""How often a credential or an address may call: one limit over all processes, and over all nodes
when they share a cache."""

import contextlib
import time
from typing import TYPE_CHECKING

import structlog

from tapgate.edge.buckets import CacheAwayError, NodeBuckets, Rate, Taken
from tapgate.edge.node_files import shared_folder
from tapgate.settings import Settings

if TYPE_CHECKING:
    from tapgate.edge.cache_buckets import CacheBuckets

_log = structlog.get_logger()

_RETRY_AFTER_SECONDS = 1.0


class Throttle:
    """Takes from the cache where there is one, and from this node's buckets while it is away."""

    def __init__(self, settings: Settings) -> None:
        self.rate = Rate(settings.rate_limit, settings.rate_burst)
        self._node = NodeBuckets(shared_folder(settings.data_dir) / "buckets", self.rate)
        self._cache = self._shared(settings.cache_url)
        self._cache_away_until: float | None = None

    async def take(self, key: str, rate: Rate | None = None) -> Taken:
        """Take a token of the key's bucket; a key always comes with the same rate."""
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

    def _shared(self, url: str | None) -> "CacheBuckets | None":
        if url is None:
            return None
        # Here, because most processes have no cache and it takes long to import.
        from tapgate.edge.cache_buckets import CacheBuckets  # noqa: PLC0415

        return CacheBuckets(url, self.rate)

    def _is_away(self) -> bool:
        return self._cache_away_until is not None and time.monotonic() < self._cache_away_until

    async def close(self) -> None:
        self._node.close()
        if self._cache is not None:
            await self._cache.close()
