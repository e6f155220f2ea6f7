"""Chooses the server that a backup is read from.

A backup reads one snapshot. On the primary it makes payments to busy merchants more expensive, the
longer it takes, because PostgreSQL cannot remove old row versions. A standby has no payments.
"""

from typing import Final, NamedTuple

from tapgate.core.settings import Settings
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.replica import Replica

#: A larger database takes minutes to dump.
LARGE_DATABASE_BYTES: Final = 10_000_000_000


class BackupSource(NamedTuple):
    url: str
    warning: str | None = None


async def choose_source(settings: Settings, primary_url: str) -> BackupSource:
    """Return the standby if there is one and it has all changes, and otherwise the primary."""
    primary = await Database.connect(primary_url)
    replica = await Replica.connect(settings)
    try:
        if replica is not None and await replica.catches_up(primary):
            assert settings.database_replica_url is not None
            return BackupSource(settings.database_replica_url)
        size = await primary.fetchval("SELECT pg_database_size(current_database())")
    finally:
        await primary.close()
        if replica is not None:
            await replica.database.close()
    if replica is not None:
        return BackupSource(
            primary_url,
            "Warning: the standby of TAPGATE_DATABASE_REPLICA_URL is not available or too far"
            " behind. Reading the backup from the primary.",
        )
    if size < LARGE_DATABASE_BYTES:
        return BackupSource(primary_url)
    return BackupSource(
        primary_url,
        f"Warning: the database has {size / 1e9:,.0f} GB. Until the backup ends, payments to busy"
        " merchants become slower. Set TAPGATE_DATABASE_REPLICA_URL to read from a standby, or use"
        " pg_basebackup and archived WAL (docs/running.md).",
    )
