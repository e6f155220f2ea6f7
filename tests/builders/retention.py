"""Retention job runs with the gateway's declarations."""

from tapgate.core.settings import Settings, load_settings
from tapgate.runtime.retention import RetentionJob
from tapgate.runtime.store.database import Database
from tapgate.server.retention import RETENTION
from tapgate_client.clock import Clock


async def delete_expired(
    database: Database,
    clock: Clock,
    *tables: str,
    settings: Settings | None = None,
    batch_size: int | None = None,
) -> int:
    """Delete the expired rows of the tables and return their number."""
    job = RetentionJob(database, clock, settings or load_settings({}), ())
    count = 0
    for declaration in RETENTION:
        if declaration.table in tables:
            size = batch_size or declaration.batch_size
            count += await job.apply(declaration._replace(batch_size=size))
    return count
