"""Builds the demo country in a database, from its founding until a moment ago."""

import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import datetime, time, timedelta
from random import Random
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from tapgate.clock import get_platform_day
from tapgate.demo.country import SIZES
from tapgate.demo.dealings import Dealings
from tapgate.demo.founding import FIRST_SERIAL, Founder, caller
from tapgate.demo.life import Life
from tapgate.demo.past import PastClock
from tapgate.demo.residents import Country
from tapgate.edge.services import Services
from tapgate.settings import NO_RECEIPTS, Settings
from tapgate.store.database import DATABASE_ERRORS, Database

_SEED: Final = 23225
_LOCK: Final = 0x64_656D_6F  # "demo"
#: What is built ends this long before now, so that nothing lies in the future.
_BEFORE_NOW: Final = timedelta(minutes=2)

#: Told how much of the work was done since it was last told.
Advance = Callable[[int], None]


class DemoError(Exception):
    """Why the demo is not built, in one line for whoever wants it."""


def work(size: str) -> int:
    """How much there is to do, in the units that `advance` is told."""
    subscribers, _, _, days, a_day, _ = SIZES[size]
    return round(subscribers * (1 + a_day * days * 0.9))


def clock_before(now: datetime, size: str, zone: ZoneInfo) -> PastClock:
    """Early in the morning of the country's first day."""
    first = get_platform_day(now - _BEFORE_NOW, zone) - timedelta(days=SIZES[size].days - 1)
    return PastClock(datetime.combine(first, time(5), zone))


def untold(settings: Settings) -> Settings:
    """To build with: nobody has a phone on which to read of a life that was made up."""
    return msgspec.structs.replace(settings, receipts=NO_RECEIPTS)


@contextlib.asynccontextmanager
async def alone(database: Database) -> AsyncIterator[None]:
    """Refuses where the demo is already, or is just being built by another process."""
    async with database.connection() as connection:
        if not await connection.fetchval("SELECT pg_try_advisory_lock($1)", _LOCK):
            raise DemoError("the demo is just being built by another process")
        try:
            if await is_there(database):
                raise DemoError(
                    "the demo is there already; for a new one, start with an empty data folder"
                )
            yield
        finally:
            # A connection that is lost has given the lock back by that.
            with contextlib.suppress(*DATABASE_ERRORS):
                await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK)


async def is_there(database: Database) -> bool:
    """Also when its building was interrupted."""
    found: bool = await database.fetchval(
        "SELECT EXISTS (SELECT FROM cards WHERE serial = $1)", FIRST_SERIAL
    )
    return found


async def build(
    past: Services, clock: PastClock, size: str, now: datetime, advance: Advance
) -> Country:
    """`past` lives by the clock that is given, and its ids follow it."""
    dimensions, end = SIZES[size], now - _BEFORE_NOW
    zone = past.settings.timezone
    today = get_platform_day(end, zone)
    chance = Random(_SEED)  # noqa: S311, the same country every time
    founder = Founder(caller(past), chance, dimensions)
    country = await founder.found(today)
    dealings = Dealings(past, country, chance)
    life = Life(country, founder, dealings, chance, dimensions, clock, advance)
    await life.live(today, end, zone)
    clock.move_to(end)
    await life.prepare_examples()
    await past.authenticator.terminals.flush_last_seen()
    return country
