"""Builds the demo country in a database, from its first day until shortly before now."""

import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from datetime import datetime, time, timedelta
from random import Random
from typing import Final
from zoneinfo import ZoneInfo

from tapgate.auth.actors import SYSTEM_ACTOR
from tapgate.business.reporting.operations import verify_ledger
from tapgate.business.staff.api_keys import operations as api_keys
from tapgate.core.settings import Settings
from tapgate.core.settings.business import Receipts
from tapgate.http.api.services import Services
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.failures import DATABASE_ERRORS
from tapgate.server.gateway_services import open_services
from tapgate_client.clock import get_platform_day
from tapgate_client.schemas.admin import NewApiKey, Scope
from tapgate_sandbox.demo import example_requests, examples, owner_users
from tapgate_sandbox.demo.administrator import DemoError, require_first_admin
from tapgate_sandbox.demo.clock import SimulatedClock
from tapgate_sandbox.demo.country import SIZES
from tapgate_sandbox.demo.people import Country
from tapgate_sandbox.demo.progress import show_progress
from tapgate_sandbox.demo.seed import FIRST_SERIAL, Seeder
from tapgate_sandbox.demo.simulation import Simulation
from tapgate_sandbox.demo.transactions import TransactionSimulator

_SEED: Final = 23225
_ADVISORY_LOCK_KEY: Final = 0x64_656D_6F  # "demo"
#: Margin between the end of the simulation and now, so that no record is in the future.
_END_BEFORE_NOW: Final = timedelta(minutes=2)

#: Called with the amount of work done since the previous call.
AdvanceProgress = Callable[[int], None]


def _estimate_work(size: str) -> int:
    """Return the estimated total work, in the units passed to `AdvanceProgress`."""
    subscribers, _, _, days, transactions_per_day, _ = SIZES[size]
    return round(subscribers * (1 + transactions_per_day * days * 0.9))


def create_clock(now: datetime, size: str, zone: ZoneInfo) -> SimulatedClock:
    """Return a clock set to the early morning of the first simulated day."""
    first = get_platform_day(now - _END_BEFORE_NOW, zone) - timedelta(days=SIZES[size].days - 1)
    return SimulatedClock(datetime.combine(first, time(5), zone))


def without_notifications(settings: Settings) -> Settings:
    """Return settings that disable messages: the simulated people have no phones."""
    return settings.replace(receipts=Receipts.NO_MESSAGES)


@contextlib.asynccontextmanager
async def acquire_build_lock(database: Database) -> AsyncIterator[None]:
    """Hold the build lock.

    Raise `DemoError` if the demo exists or is already being built, or approval rules exist.
    """
    async with database.connection() as connection:
        if not await connection.fetchval("SELECT pg_try_advisory_lock($1)", _ADVISORY_LOCK_KEY):
            raise DemoError("another process is already loading the demo data")
        try:
            if await is_built(database):
                raise DemoError(
                    "demo data already exists: to load it again, use an empty data folder"
                )
            if await database.fetchval("SELECT EXISTS (SELECT FROM approval_rules)"):
                raise DemoError(
                    "approval rules exist, and demo data would create money without approvals: use"
                    " an empty data folder"
                )
            yield
        finally:
            # PostgreSQL releases the lock if the connection is lost.
            with contextlib.suppress(*DATABASE_ERRORS):
                await connection.execute("SELECT pg_advisory_unlock($1)", _ADVISORY_LOCK_KEY)


async def is_built(database: Database) -> bool:
    """Return whether the demo exists. A demo whose build was interrupted counts as existing."""
    exists: bool = await database.fetchval(
        "SELECT EXISTS (SELECT FROM cards WHERE serial = $1)", FIRST_SERIAL
    )
    return exists


async def build_demo(services: Services, database_url: str, size: str) -> list[str]:
    """Build the demo, and save and return example requests with a new API key.

    Raise DemoError if no system_admin exists, the demo exists, or another process is building it.
    """
    settings, now = services.settings, services.clock()
    admin_id = await require_first_admin(services.database)
    async with acquire_build_lock(services.database):
        clock = create_clock(now, size, settings.timezone)
        with show_progress(f"Building a {size} demo", _estimate_work(size)) as advance:
            async with open_services(
                without_notifications(settings), database_url, clock=clock
            ) as demo_services:
                country = await build(demo_services, clock, size, now, advance)
        await owner_users.create_users(services, country)
        async with services.transaction() as tx:
            _, key = await api_keys.create(
                tx,
                SYSTEM_ACTOR,
                NewApiKey(name="demo", scopes=list(Scope)),
                created_by=admin_id,
                has_unknown_holder=True,
                api_keys=services.authenticator.api_keys,
            )
        await verify_ledger(
            services.database,
            SYSTEM_ACTOR,
            services.clock,
            services.new_id,
            vault=services.vault,
        )
        lines = example_requests.render_examples(
            country,
            example_requests.build_context(settings, key, sys.argv[0]),
            today=get_platform_day(now, settings.timezone),
        )
        examples.save_examples(settings.data_dir, lines)
    return lines


async def mark_messages_read(services: Services) -> None:
    """Mark all messages as read: the simulated people have no phones."""
    await services.database.execute(
        """UPDATE messages
           SET status = 'delivered', parameters = NULL, delivery = 'read', delivery_at = created_at
           WHERE status = 'pending'"""
    )


async def build(
    services: Services, clock: SimulatedClock, size: str, now: datetime, advance: AdvanceProgress
) -> Country:
    """Build the demo; `services` must use `clock`, also to generate IDs."""
    dimensions, end = SIZES[size], now - _END_BEFORE_NOW
    zone = services.settings.timezone
    today = get_platform_day(end, zone)
    rng = Random(_SEED)  # noqa: S311 - fixed seed, so that builds are similar
    seeder = Seeder(services, rng, dimensions)
    country = await seeder.seed_country(today)
    simulator = TransactionSimulator(services, country, rng)
    simulation = Simulation(country, seeder, simulator, rng, dimensions, clock, advance)
    await simulation.run(today, end, zone)
    clock.advance_to(end)
    await simulation.prepare_examples()
    await mark_messages_read(services)
    await services.authenticator.terminals.flush_last_seen()
    await services.authenticator.hmac_keys.last_used.flush()
    return country
