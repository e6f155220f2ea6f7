"""Schema migrations: numbered SQL files, forward only, each applied once."""

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import asyncpg

from tapgate.store import StoreError
from tapgate.store.connect import open_connection
from tapgate.store.failures import DATABASE_ERRORS
from tapgate.store.lock_waits import BlockerWatch
from tapgate.store.sessions import (
    COPY_LIMITS,
    MIGRATION_LIMITS,
    SessionLimits,
    format_timeout,
)

_MIGRATIONS_DIR = Path(__file__).parent / "migrations"
_CONNECT_TIMEOUT_SECONDS = 10.0
_MIN_POSTGRES_VERSION = 16  # documented in docs/running.md
#: Advisory lock held while a process creates or migrates tables.
MIGRATION_LOCK_KEY = 0x7461_7067_6174_65  # "tapgate"
#: How long a migration waits for a table lock if an autovacuum holds it. PostgreSQL cancels the
#: autovacuum after `deadlock_timeout`, one second by default.
_AUTOVACUUM_LOCK_TIMEOUT_SECONDS = 1.5
#: Pauses between attempts, in which payments proceed.
_MIN_PAUSE_SECONDS = 0.5
_MAX_PAUSE_SECONDS = 5.0
#: After this time a migration that cannot lock its tables fails.
_LOCK_DEADLINE_SECONDS = 600.0

#: Receives lines for the operator.
ReportLine = Callable[[str], None]

_CREATE_TABLE = """
    CREATE TABLE IF NOT EXISTS schema_migrations (
        name text PRIMARY KEY,
        sha256 text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    )"""


class Migration(NamedTuple):
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


async def migrate(
    url: str, folder: Path = _MIGRATIONS_DIR, report: ReportLine = lambda line: None
) -> list[str]:
    """Apply pending migrations and return their names. Safe to call concurrently.

    A migration never waits long for a table lock, because all other sessions would wait behind it.
    It is retried until it gets its locks; `report` receives the sessions that block it.
    """
    migrations = _load_migrations(folder)
    connection = await open_checked_connection(url, MIGRATION_LIMITS)
    try:
        # The lock is released when the session ends. A concurrent process waits for it and then
        # finds nothing pending.
        await connection.execute("SET lock_timeout = 0")
        await connection.execute("SELECT pg_advisory_lock($1)", MIGRATION_LOCK_KEY)
        await connection.execute(_CREATE_TABLE)
        rows = await connection.fetch("SELECT name, sha256 FROM schema_migrations")
        pending = find_pending(migrations, {row["name"]: row["sha256"] for row in rows})
        for migration in pending:
            await _apply_with_retries(url, connection, migration, report)
        return [migration.name for migration in pending]
    except DATABASE_ERRORS as error:
        raise StoreError(f"the database cannot be migrated: {summarize_error(error)}") from error
    finally:
        await connection.close(timeout=_CONNECT_TIMEOUT_SECONDS)


def _load_migrations(folder: Path) -> list[Migration]:
    return [Migration(file.name, file.read_text()) for file in sorted(folder.glob("*.sql"))]


def find_pending(migrations: Sequence[Migration], applied: Mapping[str, str]) -> list[Migration]:
    """Return the pending migrations in order; raise StoreError if they cannot be applied."""
    known = {migration.name for migration in migrations}
    if newer := sorted(applied.keys() - known):
        raise StoreError(
            f"the database is newer than this version of Tapgate: it has {', '.join(newer)}"
        )
    for migration in migrations:
        if applied.get(migration.name, migration.sha256) != migration.sha256:
            raise StoreError(f"{migration.name} was changed after it was applied")
    pending = [migration for migration in migrations if migration.name not in applied]
    if applied and pending and pending[0].name < max(applied):
        raise StoreError(f"{pending[0].name} comes before {max(applied)}, which is already applied")
    return pending


def require_known_migrations(applied: Mapping[str, str]) -> None:
    """Raise StoreError if this version cannot upgrade a database with these migrations."""
    find_pending(_load_migrations(_MIGRATIONS_DIR), applied)


async def create_schema(connection: asyncpg.Connection, applied: Mapping[str, str]) -> None:
    """Run the migrations in `applied` on an empty database, in the current database transaction.

    The migrations must have passed `require_known_migrations`. The caller fills schema_migrations.
    """
    await connection.execute(_CREATE_TABLE)
    for migration in _load_migrations(_MIGRATIONS_DIR):
        if migration.name in applied:
            await connection.execute(migration.sql)


async def _apply_with_retries(
    url: str, connection: asyncpg.Connection, migration: Migration, report: ReportLine
) -> None:
    """Apply a migration, and retry while another session holds a lock on one of its tables."""
    deadline, pause = monotonic() + _LOCK_DEADLINE_SECONDS, _MIN_PAUSE_SECONDS
    lock_seconds = MIGRATION_LIMITS.lock
    async with contextlib.AsyncExitStack() as stack:
        watch: BlockerWatch | None = None
        while True:
            try:
                await _apply(connection, migration, lock_seconds)
            except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
                blockers = watch.take_blockers() if watch is not None else []
            except DATABASE_ERRORS as error:
                raise StoreError(
                    f"{migration.name} cannot be applied: {summarize_error(error)}"
                ) from error
            else:
                return
            names = ", ".join(map(str, blockers)) or "another session"
            if monotonic() > deadline:
                raise StoreError(
                    f"{migration.name} cannot be applied: {names} holds a lock on its tables. End"
                    " that session, or start again when its transaction has ended"
                )
            if watch is None:  # opened only now, because most migrations are not blocked
                pid = await connection.fetchval("SELECT pg_backend_pid()")
                watch = await stack.enter_async_context(BlockerWatch(url, pid))
                continue
            report(f"{migration.name} waits for a lock held by {names}. Retrying in {pause:g} s.")
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE_SECONDS)
            lock_seconds = (
                _AUTOVACUUM_LOCK_TIMEOUT_SECONDS
                if blockers and all(blocker.is_autovacuum for blocker in blockers)
                else MIGRATION_LIMITS.lock
            )


async def _apply(connection: asyncpg.Connection, migration: Migration, lock_seconds: float) -> None:
    async with connection.transaction():
        await connection.execute(f"SET LOCAL lock_timeout = '{format_timeout(lock_seconds)}'")
        await connection.execute(migration.sql)
        await connection.execute(
            "INSERT INTO schema_migrations (name, sha256) VALUES ($1, $2)",
            migration.name,
            migration.sha256,
        )


async def open_checked_connection(
    url: str, limits: SessionLimits = COPY_LIMITS
) -> asyncpg.Connection:
    """Connect for a command. The timeouts of the database URL are for requests and do not apply."""
    try:
        connection = await open_connection(
            url, timeout=_CONNECT_TIMEOUT_SECONDS, settings=limits.to_settings()
        )
    except (*DATABASE_ERRORS, ValueError) as error:
        raise StoreError(f"the database cannot be reached: {summarize_error(error)}") from error
    try:
        if connection.get_server_version().major < _MIN_POSTGRES_VERSION:
            raise StoreError(f"PostgreSQL {_MIN_POSTGRES_VERSION} or newer is required")
        encoding = await connection.fetchval("SHOW server_encoding")
        if encoding != "UTF8":
            raise StoreError(
                f"the database's encoding is {encoding}: create it with ENCODING 'UTF8', so that it"
                " can store every name"
            )
    except BaseException:  # also if canceled: no caller could close the connection
        connection.terminate()
        raise
    return connection


def summarize_error(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
