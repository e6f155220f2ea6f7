"""Token buckets shared by all nodes, stored in Valkey or Redis."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import structlog
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.commands.core import AsyncScript
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from tapgate.http.rate_limits.token_buckets import CacheUnavailableError, RateLimit, RateLimitResult
from tapgate.runtime.background import start_task

_log = structlog.get_logger()

#: For a command. Connecting takes several round trips more, for TCP, TLS and authentication.
TIMEOUT_SECONDS = 0.25
CONNECT_TIMEOUT_SECONDS = 2.0
RETRY_SECONDS = 1.0
_PROBE_RATE = RateLimit(1, 60)

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

#: Takes several tokens from each bucket, at most a quarter of those it has. Returns the number of
#: tokens and the microseconds until the bucket is full, for each bucket.
_LEASE_SCRIPT = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local results = {}
for i, key in ipairs(KEYS) do
  local period, window = tonumber(ARGV[3 * i - 2]), tonumber(ARGV[3 * i - 1])
  local full_at = tonumber(redis.call('GET', key) or 0)
  if full_at < now or full_at > now + window then full_at = now end
  local available = math.floor((now + window - full_at) / period)
  local granted = math.min(tonumber(ARGV[3 * i]), math.floor(available / 4))
  local after = full_at + granted * period
  if granted > 0 then
    redis.call('SET', key, string.format('%.0f', after), 'PX', math.ceil((after - now) / 1000))
  end
  results[2 * i - 1], results[2 * i] = granted, after - now
end
return results
"""

#: Does nothing if no time is stored, because the bucket is then full.
_REFUND_SCRIPT = """
for i, key in ipairs(KEYS) do
  local full_at = redis.call('GET', key)
  if full_at then
    redis.call('SET', key, string.format('%.0f', tonumber(full_at) - tonumber(ARGV[i])), 'KEEPTTL')
  end
end
"""


class CacheBuckets:
    """Client for the shared buckets.

    After a failure, `is_available` is false until a background task has reached the cache, so that
    no further request waits for it.
    """

    def __init__(self, url: str, rate: RateLimit) -> None:
        self.is_available = True
        self._default_limit = rate
        # A pooled connection may be closed after a cache restart: retry on a new one.
        self.redis: Redis = Redis.from_url(
            url,
            socket_timeout=TIMEOUT_SECONDS,
            socket_connect_timeout=CONNECT_TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
        )
        self._take_script = self.redis.register_script(_TAKE_SCRIPT)
        self._lease_script = self.redis.register_script(_LEASE_SCRIPT)
        self._refund_script = self.redis.register_script(_REFUND_SCRIPT)
        self._probe_task: asyncio.Task[object] | None = None

    async def take(self, key: str, rate: RateLimit | None = None) -> RateLimitResult:
        rate = rate or self._default_limit
        allowed, full_in = await self._run_script(
            self._take_script, [key], [rate.period_us, rate.window_us]
        )
        return rate.build_result(bool(allowed), int(full_in))

    async def lease(self, wanted: Mapping[str, tuple[RateLimit, int]]) -> list[tuple[int, int]]:
        """Take several tokens from each bucket, fewer than wanted if it is nearly empty.

        Return the number of tokens and the microseconds until the bucket is full.
        """
        arguments = [
            argument
            for rate, tokens in wanted.values()
            for argument in (rate.period_us, rate.window_us, tokens)
        ]
        results = await self._run_script(self._lease_script, wanted, arguments)
        return list(zip(results[::2], results[1::2], strict=True))

    async def refund(self, key: str, rate: RateLimit | None = None) -> None:
        """Put a taken token back into its bucket."""
        await self.refund_many({key: (rate or self._default_limit).period_us})

    async def refund_many(self, amounts: Mapping[str, int]) -> None:
        """Put tokens back into their buckets. An amount is in token periods of its bucket."""
        await self._run_script(self._refund_script, amounts, list(amounts.values()))

    async def _run_script(
        self, script: AsyncScript, keys: Iterable[str], arguments: list[int]
    ) -> Any:
        try:
            return await script(keys=[f"tapgate:rate:{key}" for key in keys], args=arguments)
        except (RedisError, OSError) as error:
            self._set_unavailable(error)
            raise CacheUnavailableError(type(error).__name__) from error

    def _set_unavailable(self, error: Exception) -> None:
        if self.is_available:
            self.is_available = False
            _log.warning("throttle.cache_unavailable", error=type(error).__name__)
            self._probe_task = start_task(self._probe_until_available())

    async def _probe_until_available(self) -> None:
        while not self.is_available:
            await asyncio.sleep(RETRY_SECONDS)
            try:
                # A cache that is full or read-only answers PING, but cannot take a token.
                await self.take("probe", _PROBE_RATE)
            except CacheUnavailableError:
                continue
            self.is_available = True
            _log.info("throttle.cache_recovered")

    async def require_reachable(self) -> None:
        try:
            await self.redis.ping()
        except (RedisError, OSError) as error:
            raise CacheUnavailableError(type(error).__name__) from error

    async def close(self) -> None:
        if self._probe_task is not None:
            self._probe_task.cancel()
            await asyncio.gather(self._probe_task, return_exceptions=True)
        await self.redis.aclose()
