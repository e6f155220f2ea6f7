"""Builds the demo country in a database, from its founding until a moment ago."""

import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import datetime, time, timedelta
from random import Random
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from tapgate.clock import get_platform_day
from tapgate.demo.clock import SimulatedClock
from tapgate.demo.country import SIZES
from tapgate.demo.people import Country
from tapgate.demo.seed import FIRST_SERIAL, Seeder, build_request_context
from tapgate.demo.simulation import Simulation
from tapgate.demo.transactions import TransactionSimulator
from tapgate.edge.services import Services
from tapgate.settings import NO_RECEIPTS, Settings
from tapgate.store.database import DATABASE_ERRORS, Database

_SEED: Final = 23225
_ADVISORY_LOCK_KEY: Final = 0x64_656D_6F  # "demo"
#: What is built ends this long before now, so that nothing lies in the future.
_END_BEFORE_NOW: Final = timedelta(minutes=2)

#: Told how much of the work was done since it was last told.
AdvanceProgress = Callable[[int], None]


class DemoError(Exception):
    """Why the demo is not built, in one line for whoever wants it."""


def estimate_work(size: str) -> int:
    """How much there is to do, in the units that `advance` is told."""
    subscribers, _, _, days, a_day, _ = SIZES[size]
    return round(subscribers * (1 + a_day * days * 0.9))


def create_clock(now: datetime, size: str, zone: ZoneInfo) -> SimulatedClock:
    """Early in the morning of the country's first day."""
    first = get_platform_day(now - _END_BEFORE_NOW, zone) - timedelta(days=SIZES[size].days - 1)
    return SimulatedClock(datetime.combine(first, time(5), zone))


def without_notifications(settings: Settings) -> Settings:
    """To build with: nobody has a phone on which to read of a life that was made up."""
    return msgspec.structs.replace(settings, receipts=NO_RECEIPTS)


@contextlib.asynccontextmanager
async def acquire_build_lock(database: Database) -> AsyncIterator[None]:
    """Refuses where the demo is already, or is just being built by another process."""
    async with database.connection() as connection:
        if not await connection.fetchval("SELECT pg_try_advisory_lock($1)", _ADVISORY_LOCK_KEY):
            raise DemoError("the demo is just being built by another process")
        try:
            if await is_built(database):
                raise DemoError(
                    "the demo is there already; for a new one, start with an empty data folder"
                )
            yield
        finally:
            # A connection that is lost has given the lock back by that.
            with contextlib.suppress(*DATABASE_ERRORS):
                await connection.execute("SELECT pg_advisory_unlock($1)", _ADVISORY_LOCK_KEY)


async def is_built(database: Database) -> bool:
    """Also when its building was interrupted."""
    found: bool = await database.fetchval(
        "SELECT EXISTS (SELECT FROM cards WHERE serial = $1)", FIRST_SERIAL
    )
    return found


async def build(
    past: Services, clock: SimulatedClock, size: str, now: datetime, advance: AdvanceProgress
) -> Country:
    """`past` lives by the clock that is given, and its ids follow it."""
    dimensions, end = SIZES[size], now - _END_BEFORE_NOW
    zone = past.settings.timezone
    today = get_platform_day(end, zone)
    chance = Random(_SEED)  # noqa: S311, the same country every time
    founder = Seeder(build_request_context(past), chance, dimensions)
    country = await founder.seed_country(today)
    dealings = TransactionSimulator(past, country, chance)
    life = Simulation(country, founder, dealings, chance, dimensions, clock, advance)
    await life.run(today, end, zone)
    clock.advance_to(end)
    await life.prepare_examples()
    await past.authenticator.terminals.flush_last_seen()
    return country
