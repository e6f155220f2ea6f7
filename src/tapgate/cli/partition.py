"""`tapgate partition`: divide the tables of an older installation into partitions by month."""

import asyncio

from rich.console import Console

from tapgate.ledger.maintenance import ensure_partitions, partition_job
from tapgate.store import StoreError
from tapgate.store.database import Database
from tapgate.store.exclusive_job import AlreadyRunningError
from tapgate.store.split import copy_keys, divide
from tapgate_client import ids
from tapgate_client.clock import system_clock


async def divide_installation(url: str, *, pause_seconds: float) -> None:
    """Copy the old keys, then divide the old tables, with a pause after every step."""
    console = Console(highlight=False)

    async def pause() -> None:
        await asyncio.sleep(pause_seconds)

    database = await Database.connect(url)
    try:
        await ensure_partitions(database, system_clock())
        async with partition_job.acquire_connection(database) as connection:
            async for last_id in copy_keys(connection, pause):
                console.print(f"Keys copied up to {ids.get_time(last_id):%Y-%m-%d %H:%M}")
            async for line in divide(connection, system_clock(), pause):
                console.print(line)
    except AlreadyRunningError:
        raise StoreError(
            "another process is changing partitions. Run the command again later"
        ) from None
    finally:
        await database.close()
    console.print("The ledger is partitioned by month.")
