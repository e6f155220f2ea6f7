"""A cache never gives what a signal has taken back."""

import asyncio
from collections.abc import Callable

from tapgate.credentials.cache import Cache


class Line:
    """As much of signals as a cache sees, moved by hand."""

    def __init__(self) -> None:
        self.listening = True
        self._handlers: list[Callable[[str], None]] = []
        self._gap_handlers: list[Callable[[], None]] = []

    def on(self, topic: str, handler: Callable[[str], None]) -> None:
        assert topic == "topic"
        self._handlers.append(handler)

    def on_gap(self, handler: Callable[[], None]) -> None:
        self._gap_handlers.append(handler)

    def signal(self) -> None:
        for handler in self._handlers:
            handler("")

    def reconnect(self) -> None:
        for handler in self._gap_handlers:
            handler()
        self.listening = True


class Table:
    """What is read: counts the readings, and can be made to wait."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {"key": "value"}
        self.readings = 0
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def load(self, key: str) -> str | None:
        self.readings += 1
        row = self.rows.get(key)
        await self.go_on.wait()
        return row


def made(size: int = 10) -> tuple[Line, Table, Cache[str, str]]:
    line, table = Line(), Table()
    return line, table, Cache(line, "topic", table.load, size)  # type: ignore[arg-type]


async def test_a_value_is_read_once() -> None:
    _, table, cache = made()
    assert [await cache.get("key"), await cache.get("key")] == ["value", "value"]
    assert table.readings == 1


async def test_what_is_not_there_is_not_remembered() -> None:
    _, table, cache = made()
    assert await cache.get("new") is None
    table.rows["new"] = "now"
    assert await cache.get("new") == "now"


async def test_a_signal_empties_it() -> None:
    line, table, cache = made()
    await cache.get("key")
    del table.rows["key"]
    line.signal()
    assert await cache.get("key") is None


async def test_a_value_read_before_a_signal_is_not_kept_after_it() -> None:
    line, table, cache = made()
    table.go_on.clear()
    reading = asyncio.create_task(cache.get("key"))
    await asyncio.sleep(0)
    del table.rows["key"]
    line.signal()
    table.go_on.set()
    assert await reading == "value"
    assert await cache.get("key") is None


async def test_while_nothing_is_heard_it_is_not_used() -> None:
    line, table, cache = made()
    await cache.get("key")
    line.listening = False
    table.rows["key"] = "other"
    assert await cache.get("key") == "other"
    table.rows["key"] = "third"
    assert await cache.get("key") == "third"


async def test_after_a_gap_it_is_empty() -> None:
    line, table, cache = made()
    await cache.get("key")
    line.listening = False
    del table.rows["key"]
    line.reconnect()
    assert await cache.get("key") is None


async def test_a_value_read_before_a_gap_is_not_kept_after_it() -> None:
    line, table, cache = made()
    table.go_on.clear()
    reading = asyncio.create_task(cache.get("key"))
    await asyncio.sleep(0)
    line.listening = False
    del table.rows["key"]
    line.reconnect()
    table.go_on.set()
    assert await reading == "value"
    assert await cache.get("key") is None


async def test_a_value_read_into_a_gap_is_not_kept() -> None:
    line, table, cache = made()
    table.go_on.clear()
    reading = asyncio.create_task(cache.get("key"))
    await asyncio.sleep(0)
    line.listening = False
    table.go_on.set()
    await reading
    assert cache._values == {}


async def test_the_oldest_makes_room() -> None:
    _, table, cache = made(size=2)
    table.rows = {"a": "1", "b": "2", "c": "3"}
    for key in "abc":
        await cache.get(key)
    assert list(cache._values) == ["b", "c"]
