"""Reports read from a standby only if it has all changes from the primary."""

import asyncio
import contextlib
import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from drivers.standby import Standby
from tapgate.core.settings import Settings
from tapgate.core.vault import Vault
from tapgate.runtime.store import backup_source
from tapgate.runtime.store.backup import create_backup
from tapgate.runtime.store.backup_source import BackupSource, choose_source
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.embedded import EmbeddedPostgres
from tapgate.runtime.store.replica import Replica
from tapgate_client.errors import ApiError


@pytest.fixture
async def primary(data_dir: Path) -> AsyncIterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(data_dir)
    server.start()
    yield server
    server.stop()


async def wait_until_reachable(database: Database) -> None:
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(ApiError):
                await database.fetchval("SELECT 1")
                return
            await asyncio.sleep(0.02)


async def catches_up(replica: Replica, primary: Database) -> bool:
    replica.retry_at = 0.0
    return await replica.catches_up(primary)


async def test_standby_is_used_while_it_has_all_changes(
    primary: EmbeddedPostgres, public_tmp_path: Path, settings: Settings
) -> None:
    """Reports and backups read from it."""
    folder = public_tmp_path / "standby"
    standby = Standby(primary, folder)
    standby.start()
    database = await Database.connect(primary.url)
    reader = await Database.connect(f"postgresql://postgres@/tapgate?host={folder}")
    replica = Replica(reader, max_lag_seconds=30)
    try:
        await wait_until_reachable(reader)
        await database.execute("CREATE TABLE numbers (n int)")
        for number in range(5):
            await database.execute("INSERT INTO numbers VALUES ($1)", number)
            assert await catches_up(replica, database)
            assert await reader.fetchval("SELECT count(*) FROM numbers") == number + 1

        await reader.execute("SELECT pg_wal_replay_pause()")
        await database.execute("INSERT INTO numbers VALUES (5)")
        assert not await catches_up(Replica(reader, max_lag_seconds=0.1), database)
        await reader.execute("SELECT pg_wal_replay_resume()")
        assert await catches_up(replica, database)

        standby_url = f"postgresql://postgres@/tapgate?host={folder}"
        with_standby = settings.replace(database_replica_url=standby_url, replica_max_lag=30)
        source = await choose_source(with_standby, primary.url)
        assert source == BackupSource(standby_url)
        manifest, _ = await create_backup(
            source.url, io.BytesIO(), Vault(settings.secret_key), lambda size, table: None
        )
        assert manifest.tables["numbers"] == 6

        assert not await catches_up(Replica(database, max_lag_seconds=0.1), database)
        standby.stop()
        assert not await catches_up(replica, database)
        assert not await replica.catches_up(database)  # not tried again for some seconds
    finally:
        await reader.close()
        await database.close()
        standby.remove()


async def test_primary_is_read_while_the_standby_is_unreachable(
    database: Database,
) -> None:
    reader = await Database.connect("postgresql://tapgate@127.0.0.1:1/tapgate")
    replica = Replica(reader, max_lag_seconds=30)
    assert not await replica.catches_up(database)
    await reader.close()


async def test_backup_of_a_large_primary_prints_a_warning(
    settings: Settings, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await choose_source(settings, database_url) == BackupSource(database_url)
    monkeypatch.setattr(backup_source, "LARGE_DATABASE_BYTES", 1)
    source = await choose_source(settings, database_url)
    assert source.url == database_url
    assert "TAPGATE_DATABASE_REPLICA_URL" in (source.warning or "")
    unreachable = "postgresql://tapgate@127.0.0.1:1/tapgate"
    with_standby = settings.replace(database_replica_url=unreachable)
    source = await choose_source(with_standby, database_url)
    assert source.url == database_url
    assert "not available" in (source.warning or "")
