"""Sessions on a database server."""

import asyncio

import asyncpg

from harness import Harness


async def wait_for_lock_waiters(harness: Harness, count: int) -> None:
    waiting = """SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND wait_event_type = 'Lock'"""
    async with asyncio.timeout(60):
        while await harness.services.database.fetchval(waiting) < count:
            await asyncio.sleep(0.01)


async def set_read_only(url: str, *, is_read_only: bool) -> None:
    """Make a server read-only for all sessions, or writable again."""
    connection = await asyncpg.connect(url)
    value = "on" if is_read_only else "off"
    await connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
    await connection.execute("SELECT pg_reload_conf()")
    while await connection.fetchval("SHOW default_transaction_read_only") != value:
        await asyncio.sleep(0.01)
    await connection.close()
