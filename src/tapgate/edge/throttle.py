"""How often a credential or an address may call: one limit over all processes, and over all nodes
when they share a cache."""

import time

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from tapgate.edge.buckets import NodeBuckets, Rate, Taken
from tapgate.edge.node_files import shared_folder
from tapgate.settings import Settings

_log = structlog.get_logger()

_RETRY_AFTER_SECONDS = 1.0
_TIMEOUT_SECONDS = 0.25

#: The same bucket as on a node, by the cache's own clock. Answers: allowed, full in microseconds.
_TAKE = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local period, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local full_at = tonumber(redis.call('GET', KEYS[1]) or 0)
if full_at < now or full_at > now + window then full_at = now end
local after = full_at + period
if after > now + window then return {0, full_at - now} end
redis.call('SET', KEYS[1], string.format('%.0f', after), 'PX', math.ceil((after - now) / 1000))
return {1, after - now}
"""


class CacheBuckets:
    """The buckets that all nodes share, in Valkey or Redis."""

    def __init__(self, url: str, rate: Rate) -> None:
        self._rate = rate
        self._redis: Redis = Redis.from_url(
            url, socket_timeout=_TIMEOUT_SECONDS, socket_connect_timeout=_TIMEOUT_SECONDS
        )
        self._script = self._redis.register_script(_TAKE)

    async def take(self, key: str) -> Taken:
        allowed, full_in = await self._script(
            keys=[f"tapgate:rate:{key}"], args=[self._rate.period, self._rate.window]
        )
        return self._rate.taken(bool(allowed), int(full_in))

    async def close(self) -> None:
        await self._redis.aclose()


class Throttle:
    """Takes from the cache where there is one, and from this node's buckets while it is away."""

    def __init__(self, settings: Settings) -> None:
        self.rate = Rate(settings.rate_limit, settings.rate_burst)
        self._node = NodeBuckets(shared_folder(settings.data_dir) / "buckets", self.rate)
        url = settings.cache_url
        self._cache = None if url is None else CacheBuckets(url, self.rate)
        self._cache_away_until: float | None = None

    async def take(self, key: str) -> Taken:
        if self._cache is None or self._is_away():
            return self._node.take(key)
        try:
            taken = await self._cache.take(key)
        except (RedisError, OSError) as error:
            if self._cache_away_until is None:
                _log.warning("throttle.cache_away", error=type(error).__name__)
            self._cache_away_until = time.monotonic() + _RETRY_AFTER_SECONDS
            return self._node.take(key)
        if self._cache_away_until is not None:
            _log.info("throttle.cache_back")
            self._cache_away_until = None
        return taken

    def _is_away(self) -> bool:
        return self._cache_away_until is not None and time.monotonic() < self._cache_away_until

    async def close(self) -> None:
        self._node.close()
        if self._cache is not None:
            await self._cache.close()
