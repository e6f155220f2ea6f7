"""PostgreSQL server state as sessions see it."""

from functools import partial

from tapgate.core.settings import Settings
from tapgate.runtime.health import HealthMonitor
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.server_status import get_server_status


async def test_writable_server_without_standby(database: Database) -> None:
    status = await get_server_status(database)
    assert not status.is_read_only
    assert status.replication.mode == "none"
    assert abs(status.clock_offset) < 30


async def test_clock_offset_is_the_lead_of_this_machine(database: Database) -> None:
    status = await get_server_status(database, lambda: 0.0)
    assert status.clock_offset < -1_000_000_000


async def test_read_only_server_is_not_ready(database_url: str, settings: Settings) -> None:
    database = await Database.connect(
        database_url, size=1, session={"default_transaction_read_only": "on"}
    )
    try:
        health = HealthMonitor(settings, partial(get_server_status, database))
        readiness = await health.get_readiness()
        assert [problem.code for problem in readiness.reasons] == ["database_read_only"]
    finally:
        await database.close()
