"""Thirty messages a minute: counted over all processes."""

import asyncio

from messenger.set_clock import SetClock
from tapgate.messenger import rates
from tapgate.messenger.rates import Taken
from tapgate.store.database import Database

PHONE = "+23276000001"


async def test_a_minute_has_room_for_so_many_and_says_when_it_is_over(database: Database) -> None:
    clock = SetClock()
    for _ in range(3):
        assert await rates.take(database, PHONE, most=3, now=clock()) == Taken(None, False)
    clock.forward(seconds=20.5)
    assert await rates.take(database, PHONE, most=3, now=clock()) == Taken(40, True)
    assert await rates.take(database, PHONE, most=3, now=clock()) == Taken(40, False)
    assert await rates.take(database, "+23276000002", most=3, now=clock()) == (None, False)
    clock.forward(seconds=39.5)
    assert await rates.take(database, PHONE, most=3, now=clock()) == Taken(None, False)


async def test_a_clock_that_goes_back_keeps_nobody_out(database: Database) -> None:
    clock = SetClock()
    for _ in range(4):
        await rates.take(database, PHONE, most=3, now=clock())
    clock.forward(hours=-1)
    assert await rates.take(database, PHONE, most=3, now=clock()) == Taken(None, False)


async def test_parallel_messages_do_not_outrun_it(database: Database) -> None:
    clock = SetClock()
    taken = await asyncio.gather(
        *(rates.take(database, PHONE, most=30, now=clock()) for _ in range(60))
    )
    assert sum(one.wait_seconds is None for one in taken) == 30
    assert sum(one.first_refusal for one in taken) == 1
    assert {one.wait_seconds for one in taken} == {None, 60}
