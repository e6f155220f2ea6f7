"""The credential cache: invalidation by signals, eviction, and lookup costs."""

import asyncio
from collections.abc import Callable

import pytest

from tapgate.auth.cache import Cache
from tapgate_client.errors import ApiError, Code, unavailable


class FakeSignals:
    """The part of Signals that a cache uses, driven by the test."""

    def __init__(self) -> None:
        self.is_listening = True
        self._handlers: list[Callable[[str], None]] = []
        self._reconnect_handlers: list[Callable[[], None]] = []

    def subscribe(self, topic: str, handler: Callable[[str], None]) -> None:
        assert topic == "topic"
        self._handlers.append(handler)

    def on_reconnect(self, handler: Callable[[], None]) -> None:
        self._reconnect_handlers.append(handler)

    def emit(self) -> None:
        for handler in self._handlers:
            handler("")

    def reconnect(self) -> None:
        for handler in self._reconnect_handlers:
            handler()
        self.is_listening = True


class FakeTable:
    """A table that counts its loads and can delay them."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {"key": "value"}
        self.load_count = 0
        self.resume = asyncio.Event()
        self.resume.set()

    async def load(self, key: str) -> str | None:
        self.load_count += 1
        row = self.rows.get(key)
        await self.resume.wait()
        return row


def build_cache(size: int = 10) -> tuple[FakeSignals, FakeTable, Cache[str, str]]:
    signals, table = FakeSignals(), FakeTable()
    return signals, table, Cache(signals, "topic", table.load, size)  # type: ignore[arg-type]


async def test_value_is_loaded_once() -> None:
    _, table, cache = build_cache()
    assert [await cache.get("key"), await cache.get("key")] == ["value", "value"]
    assert table.load_count == 1


async def test_missing_value_is_not_cached() -> None:
    _, table, cache = build_cache()
    assert await cache.get("new") is None
    table.rows["new"] = "now"
    assert await cache.get("new") == "now"


async def test_signal_invalidates_the_cache() -> None:
    signals, table, cache = build_cache()
    await cache.get("key")
    del table.rows["key"]
    signals.emit()
    assert await cache.get("key") is None


async def test_value_loaded_before_a_signal_is_not_cached_after_it() -> None:
    signals, table, cache = build_cache()
    table.resume.clear()
    lookup = asyncio.create_task(cache.get("key"))
    await asyncio.sleep(0)
    del table.rows["key"]
    signals.emit()
    table.resume.set()
    assert await lookup == "value"
    assert await cache.get("key") is None


async def test_cache_is_not_used_while_signals_are_disconnected() -> None:
    signals, table, cache = build_cache()
    await cache.get("key")
    signals.is_listening = False
    table.rows["key"] = "other"
    assert await cache.get("key") == "other"
    table.rows["key"] = "third"
    assert await cache.get("key") == "third"


async def test_cache_is_empty_after_a_reconnect() -> None:
    signals, table, cache = build_cache()
    await cache.get("key")
    signals.is_listening = False
    del table.rows["key"]
    signals.reconnect()
    assert await cache.get("key") is None


async def test_value_loaded_before_a_reconnect_is_not_cached_after_it() -> None:
    signals, table, cache = build_cache()
    table.resume.clear()
    lookup = asyncio.create_task(cache.get("key"))
    await asyncio.sleep(0)
    signals.is_listening = False
    del table.rows["key"]
    signals.reconnect()
    table.resume.set()
    assert await lookup == "value"
    assert await cache.get("key") is None


async def test_value_loaded_during_a_disconnect_is_not_cached() -> None:
    signals, table, cache = build_cache()
    table.resume.clear()
    lookup = asyncio.create_task(cache.get("key"))
    await asyncio.sleep(0)
    signals.is_listening = False
    table.resume.set()
    await lookup
    assert cache.values == {}


async def test_oldest_value_is_evicted_when_the_cache_is_full() -> None:
    _, table, cache = build_cache(size=2)
    table.rows = {"a": "1", "b": "2", "c": "3"}
    for key in "abc":
        await cache.get(key)
    assert list(cache.values) == ["b", "c"]


class TokenBudget:
    """A cost with a limited number of tokens; raises `RATE_LIMITED` when none is left."""

    def __init__(self, tokens: int = 5) -> None:
        self.tokens = tokens

    async def take(self) -> None:
        if self.tokens == 0:
            raise ApiError(Code.RATE_LIMITED)
        self.tokens -= 1

    async def refund(self) -> None:
        self.tokens += 1


async def test_lookup_of_an_unknown_key_costs_a_token() -> None:
    _, table, cache = build_cache()
    budget = TokenBudget(2)
    assert [await cache.get("guess", budget) for _ in range(2)] == [None, None]
    with pytest.raises(ApiError):
        await cache.get("guess", budget)
    assert table.load_count == 2
    # Looking up a valid key for the first time costs a token too.
    with pytest.raises(ApiError):
        await cache.get("key", budget)
    assert table.load_count == 2


async def test_valid_key_is_refunded_and_its_later_lookups_are_not_charged() -> None:
    signals, table, cache = build_cache()
    budget = TokenBudget(1)
    assert await cache.get("key", budget) == "value"
    assert budget.tokens == 1
    budget.tokens = 0
    assert await cache.get("key", budget) == "value"
    signals.emit()
    assert await cache.get("key", budget) == "value"
    assert table.load_count == 2


async def test_revoked_key_costs_tokens_from_its_second_lookup_on() -> None:
    signals, table, cache = build_cache()
    budget = TokenBudget(1)
    await cache.get("key", budget)
    del table.rows["key"]
    signals.emit()
    budget.tokens = 0
    assert await cache.get("key", budget) is None
    with pytest.raises(ApiError):
        await cache.get("key", budget)
    assert table.load_count == 2


async def test_lookup_that_raises_an_error_is_refunded() -> None:
    _, _, cache = build_cache()
    budget = TokenBudget(1)
    cache.load = _load_unavailable
    with pytest.raises(ApiError):
        await cache.get("key", budget)
    assert budget.tokens == 1


async def _load_unavailable(key: str) -> str | None:
    raise unavailable("The database is not reachable.")
