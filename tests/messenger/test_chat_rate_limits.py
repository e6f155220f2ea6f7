"""Message rate limit per minute, shared by all processes."""

import asyncio
from datetime import timedelta

from builders.auth import FakeClock
from tapgate.messenger import chat_rate_limits
from tapgate.runtime.store.database import Database

PHONE = "+23276000001"


async def test_message_above_the_limit_gets_the_seconds_until_the_window_ends(
    database: Database,
) -> None:
    clock = FakeClock()
    for _ in range(3):
        assert await chat_rate_limits.acquire(database, PHONE, limit=3, now=clock()) is None
    clock.advance(seconds=20.5)
    assert await chat_rate_limits.acquire(database, PHONE, limit=3, now=clock()) == 40
    assert await chat_rate_limits.acquire(database, PHONE, limit=3, now=clock()) == 40
    assert await chat_rate_limits.acquire(database, "+23276000002", limit=3, now=clock()) is None
    clock.advance(seconds=39.5)
    assert await chat_rate_limits.acquire(database, PHONE, limit=3, now=clock()) is None


async def test_clock_that_moves_back_an_hour_resets_the_window(database: Database) -> None:
    clock = FakeClock()
    for _ in range(4):
        await chat_rate_limits.acquire(database, PHONE, limit=3, now=clock())
    clock.advance(hours=-1)
    assert await chat_rate_limits.acquire(database, PHONE, limit=3, now=clock()) is None


async def test_parallel_messages_do_not_exceed_the_limit(database: Database) -> None:
    clock = FakeClock()
    results = await asyncio.gather(
        *(chat_rate_limits.acquire(database, PHONE, limit=30, now=clock()) for _ in range(60))
    )
    assert results.count(None) == 30
    assert results.count(60) == 30


async def test_parallel_messages_with_unordered_clock_readings_do_not_exceed_the_limit(
    database: Database,
) -> None:
    """A transaction that reads the clock first may reach the row last."""
    now = FakeClock()()
    readings = [now - timedelta(milliseconds=number * 37 % 60) for number in range(60)]
    results = await asyncio.gather(
        *(chat_rate_limits.acquire(database, PHONE, limit=30, now=reading) for reading in readings)
    )
    assert results.count(None) == 30


async def test_older_clock_reading_does_not_reset_the_window(database: Database) -> None:
    clock = FakeClock()
    assert await chat_rate_limits.acquire(database, PHONE, limit=1, now=clock()) is None
    clock.advance(seconds=-0.001)
    assert await chat_rate_limits.acquire(database, PHONE, limit=1, now=clock()) == 60
    assert await chat_rate_limits.mark_notified(database, PHONE)
    assert await chat_rate_limits.acquire(database, PHONE, limit=1, now=clock()) == 60
    assert not await chat_rate_limits.mark_notified(database, PHONE)


async def test_limited_person_is_notified_once_per_window(database: Database) -> None:
    clock = FakeClock()

    async def notify() -> bool:
        async with database.transaction() as tx:
            await chat_rate_limits.acquire(tx, PHONE, limit=1, now=clock())
            return await chat_rate_limits.mark_notified(tx, PHONE)

    await chat_rate_limits.acquire(database, PHONE, limit=1, now=clock())
    assert [await notify() for _ in range(3)] == [True, False, False]
    assert (await asyncio.gather(*(notify() for _ in range(5)))).count(True) == 0
    clock.advance(minutes=1)
    await chat_rate_limits.acquire(database, PHONE, limit=1, now=clock())
    assert [await notify() for _ in range(2)] == [True, False]
