"""Token buckets shared by all nodes, stored in Valkey or Redis."""

from typing import Any

from redis.asyncio import Redis
from redis.commands.core import AsyncScript
from redis.exceptions import RedisError

from tapgate.http.token_buckets import CacheUnavailableError, RateLimit, RateLimitResult

_TIMEOUT_SECONDS = 0.25

#: Same algorithm as `NodeBuckets`, with the cache's clock. Returns whether the token was granted
#: and the microseconds until the bucket is full.
_TAKE_SCRIPT = """
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

#: Does nothing if no time is stored, because the bucket is then full.
_REFUND_SCRIPT = """
if redis.call('EXISTS', KEYS[1]) == 0 then return end
local full_at = tonumber(redis.call('GET', KEYS[1])) - tonumber(ARGV[1])
redis.call('SET', KEYS[1], string.format('%.0f', full_at), 'KEEPTTL')
"""


class CacheBuckets:
    def __init__(self, url: str, rate: RateLimit) -> None:
        self._default_limit = rate
        self._redis: Redis = Redis.from_url(
            url, socket_timeout=_TIMEOUT_SECONDS, socket_connect_timeout=_TIMEOUT_SECONDS
        )
        self._take_script = self._redis.register_script(_TAKE_SCRIPT)
        self._refund_script = self._redis.register_script(_REFUND_SCRIPT)

    async def take(self, key: str, rate: RateLimit | None = None) -> RateLimitResult:
        rate = rate or self._default_limit
        allowed, full_in = await self._run_script(
            self._take_script, key, rate.period_us, rate.window_us
        )
        return rate.build_result(bool(allowed), int(full_in))

    async def refund(self, key: str, rate: RateLimit | None = None) -> None:
        """Put a taken token back into its bucket."""
        await self._run_script(self._refund_script, key, (rate or self._default_limit).period_us)

    async def _run_script(self, script: AsyncScript, key: str, *arguments: int) -> Any:
        try:
            return await script(keys=[f"tapgate:rate:{key}"], args=list(arguments))
        except (RedisError, OSError) as error:
            raise CacheUnavailableError(type(error).__name__) from error

    async def require_reachable(self) -> None:
        try:
            await self._redis.ping()
        except (RedisError, OSError) as error:
            raise CacheUnavailableError(type(error).__name__) from error

    async def close(self) -> None:
        await self._redis.aclose()
