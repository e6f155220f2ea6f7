"""In-process credential cache, invalidated by signals."""

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from tapgate.auth.rate_limit_cost import NO_COST, RateLimitCost
from tapgate.runtime.store.signals import Signals

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")


class Cache(Generic[K, V]):
    """Credential cache, cleared completely by each signal on its topic and each reconnection.

    Changes are rare, and evicting too few entries would leave a revoked credential valid.

    Keys that are not found are not cached, so guesses cannot fill the cache. Looking up such a key
    costs the caller's address a token. Keys that were found at their last lookup are reloaded at no
    cost. After a signal, legitimate callers are therefore accepted even if other callers have
    exhausted the address's rate limit.
    """

    def __init__(
        self,
        signals: Signals,
        topic: str,
        load: Callable[[K], Awaitable[V | None]],
        size: int = 10_000,
    ) -> None:
        self._signals = signals
        self.load = load
        self._size = size
        self.values: dict[K, V] = {}
        #: Keys that were found at their last lookup.
        self._known_keys: dict[K, None] = {}
        self._generation = 0
        signals.subscribe(topic, lambda _: self._invalidate())
        signals.on_reconnect(self._invalidate)

    async def get(self, key: K, cost: RateLimitCost = NO_COST) -> V | None:
        if self._signals.is_listening:
            value = self.values.get(key)
            if value is not None:
                return value
        generation = self._generation
        value = await self._load_limited(key, cost)
        # Do not cache a value loaded during a change: it may be from before the change.
        if value is not None and self._signals.is_listening and generation == self._generation:
            self._store(self.values, key, value)
        return value

    async def _load_limited(self, key: K, cost: RateLimitCost) -> V | None:
        is_known = key in self._known_keys
        if not is_known:
            await cost.take()
        try:
            value = await self.load(key)
        except Exception:
            if not is_known:
                await cost.refund()
            raise
        if value is None:
            self._known_keys.pop(key, None)
        elif not is_known:
            self._store(self._known_keys, key, None)
            await cost.refund()
        return value

    def _store(self, entries: dict[K, T], key: K, value: T) -> None:
        if len(entries) >= self._size:
            del entries[next(iter(entries))]
        entries[key] = value

    def _invalidate(self) -> None:
        self._generation += 1
        self.values.clear()
