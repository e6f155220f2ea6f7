"""Applies schema migrations: numbered SQL files, forward only, each applied once."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Final

import asyncpg

from tapgate import VERSION
from tapgate.runtime.store import StoreError
from tapgate.runtime.store.connect import open_connection
from tapgate.runtime.store.connection_settings import (
    COPY_LIMITS,
    MIGRATION_LIMITS,
    SessionLimits,
    format_timeout,
)
from tapgate.runtime.store.failures import DATABASE_ERRORS, summarize_error
from tapgate.runtime.store.lock_waits import BlockerWatch
from tapgate.runtime.store.migration_plan import (
    FIRST_CLASSIFIED,
    LAST_1X_MIGRATION,
    MIGRATIONS_DIR,
    Migration,
    MigrationPlan,
    build_plan,
    build_too_old_error,
    load_migrations,
    read_applied,
)
from tapgate.runtime.store.partitioned_indexes import execute_for_partitions

_CONNECT_TIMEOUT_SECONDS = 10.0
MIN_POSTGRES_VERSION = 16  # documented in docs/running.md
#: Advisory lock held while a process creates or migrates tables.
MIGRATION_LOCK_KEY: Final = 0x7461_7067_6174_65  # "tapgate"
_LOCK_POLL_SECONDS = 0.1
#: Advisory lock under which a node registers, and under which a contract migration checks that no
#: registered node needs what it removes.
NODES_LOCK_KEY: Final = 7_205_759_403_792_794
#: How long a migration waits for a table lock if an autovacuum holds it. PostgreSQL cancels the
#: autovacuum after `deadlock_timeout`, one second by default.
_AUTOVACUUM_LOCK_TIMEOUT_SECONDS = 1.5
#: Pauses between attempts, in which payments proceed.
MIN_PAUSE_SECONDS = 0.5
_MAX_PAUSE_SECONDS = 5.0
#: After this time a migration that cannot lock its tables fails.
LOCK_DEADLINE_SECONDS = 600.0

#: Receives lines for the operator.
ReportLine = Callable[[str], None]

_CREATE_TABLE = """
    CREATE TABLE IF NOT EXISTS schema_migrations (
        name text PRIMARY KEY,
        sha256 text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    )"""
#: Nodes that died stay registered for an hour.
_SELECT_OLDER_NODES = """
    SELECT format('%s %s:%s (%s)', role, host, port, version) FROM nodes
    WHERE coalesce(newest_migration, '') < $1 ORDER BY 1"""


async def migrate(
    url: str,
    folder: Path = MIGRATIONS_DIR,
    report: ReportLine = lambda line: None,
    *,
    contract: bool = False,
    force: bool = False,
) -> list[str]:
    """Apply pending migrations and return their names. Safe to call concurrently.

    Contract migrations are applied only with `contract` or on a new database. They are refused
    while nodes are registered that cannot run after them, unless `force` is set.

    A migration never waits long for a table lock, because all other sessions would wait behind it.
    It is retried until it gets its locks; `report` receives the sessions that block it.
    """
    migrations = load_migrations(folder)
    async with _connect(url) as connection:
        plan = build_plan(migrations, await read_applied(connection))
        await _require_last_1x_release(connection, plan)
        if not plan.select(contract=contract):
            # Without the lock: while another process builds an index, nodes must be able to start.
            return _report_notes(plan, report)
        await _acquire_lock(connection, report)
        await connection.execute(_CREATE_TABLE)
        plan = build_plan(migrations, await read_applied(connection))
        selected = plan.select(contract=contract)
        for migration in selected:
            await _apply_with_retries(url, connection, migration, report, force=force)
        remaining = [item for item in plan.pending if item not in selected]
        _report_notes(plan._replace(pending=remaining), report)
        return [migration.name for migration in selected]


async def check_schema(
    url: str, folder: Path = MIGRATIONS_DIR, report: ReportLine = lambda line: None
) -> None:
    """Raise StoreError if the database must be migrated before this release can start."""
    plan, _ = await read_plan(url, folder)
    if pending := plan.select(contract=False):
        names = ", ".join(migration.name for migration in pending)
        raise StoreError(
            f"the database must be migrated first: run `tapgate migrate` of Tapgate {VERSION}."
            f" Pending: {names}"
        )
    _report_notes(plan, report)


async def read_plan(
    url: str, folder: Path = MIGRATIONS_DIR
) -> tuple[MigrationPlan, Mapping[str, Sequence[str]]]:
    """Return the pending migrations, and the nodes that prevent contract migrations, by name."""
    async with _connect(url) as connection:
        plan = build_plan(load_migrations(folder), await read_applied(connection))
        await _require_last_1x_release(connection, plan)
        blockers = {}
        if not plan.is_new_database:
            for migration in plan.pending:
                if migration.requires is not None:
                    blockers[migration.name] = await _list_older_nodes(connection, migration)
        return plan, blockers


async def _require_last_1x_release(connection: asyncpg.Connection, plan: MigrationPlan) -> None:
    """Raise StoreError if the database was last used by a release before the last 1.x release.

    A database without a secret key was never used: creating its schema was interrupted.
    """
    if await connection.fetchval("SELECT to_regclass('installation')") is None:
        return
    names = {row[0] for row in await connection.fetch("SELECT name FROM installation")}
    if "secret_fingerprint" not in names:
        return
    if any(item.name <= LAST_1X_MIGRATION and not item.is_contract for item in plan.pending):
        raise build_too_old_error()
    require_copied_keys(names)


def require_copied_keys(installation: Collection[str]) -> None:
    """Raise StoreError if the rows of `installation` say that old transactions have no keys."""
    if "uncopied_keys" in installation:
        raise StoreError(
            "idempotency keys of old transactions are not copied yet (docs/upgrading.md). Run"
            " `tapgate partition` of the last 1.x release, then start this release again"
        )


@contextlib.asynccontextmanager
async def _connect(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await open_checked_connection(url, MIGRATION_LIMITS)
    try:
        yield connection
    except DATABASE_ERRORS as error:
        raise StoreError(f"the database cannot be migrated: {summarize_error(error)}") from error
    finally:
        await connection.close(timeout=_CONNECT_TIMEOUT_SECONDS)


async def _acquire_lock(connection: asyncpg.Connection, report: ReportLine) -> None:
    """Wait until no other process migrates. The lock is released when the session ends.

    Polls, because a statement that waits has a snapshot, and the other process's CREATE INDEX
    CONCURRENTLY would wait for the end of that snapshot.
    """
    is_reported = False
    while not await connection.fetchval("SELECT pg_try_advisory_lock($1)", MIGRATION_LOCK_KEY):
        if not is_reported:
            report("Waiting for another process that migrates the database.")
            is_reported = True
        await asyncio.sleep(_LOCK_POLL_SECONDS)


def _report_notes(plan: MigrationPlan, report: ReportLine) -> list[str]:
    for line in plan.list_notes():
        report(line)
    return []


async def create_schema(connection: asyncpg.Connection, applied: Mapping[str, str]) -> None:
    """Run the migrations in `applied` on an empty database, in the current database transaction.

    The migrations must have passed `require_known_migrations`. The caller fills schema_migrations.
    """
    await connection.execute(_CREATE_TABLE)
    for migration in load_migrations():
        if migration.name not in applied:
            continue
        if " CONCURRENTLY" not in migration.sql:
            await connection.execute(migration.sql)
            continue
        for statement in migration.sql.split(";\n"):
            if statement.strip() and not await execute_for_partitions(
                connection, statement, is_empty=True
            ):
                await connection.execute(statement.replace(" CONCURRENTLY", ""))


async def _apply_with_retries(
    url: str,
    connection: asyncpg.Connection,
    migration: Migration,
    report: ReportLine,
    *,
    force: bool,
) -> None:
    """Apply a migration, and retry while another session holds a lock on one of its tables."""
    deadline, pause = monotonic() + LOCK_DEADLINE_SECONDS, MIN_PAUSE_SECONDS
    lock_seconds = MIGRATION_LIMITS.lock
    async with contextlib.AsyncExitStack() as stack:
        watch: BlockerWatch | None = None
        while True:
            try:
                if migration.is_concurrent:
                    await _apply_concurrently(connection, migration)
                else:
                    await _apply(connection, migration, lock_seconds, force=force)
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


async def _apply(
    connection: asyncpg.Connection, migration: Migration, lock_seconds: float, *, force: bool
) -> None:
    async with connection.transaction():
        await connection.execute(f"SET LOCAL lock_timeout = '{format_timeout(lock_seconds)}'")
        if migration.is_contract and not force:
            await connection.execute("SELECT pg_advisory_xact_lock($1)", NODES_LOCK_KEY)
            await _require_no_older_nodes(connection, migration)
        await connection.execute(migration.sql)
        await record_migration(connection, migration)


async def _apply_concurrently(connection: asyncpg.Connection, migration: Migration) -> None:
    """Build indexes without blocking writes. The file first drops what an earlier attempt left.

    The statements wait for all older database transactions, and block none while they wait.
    """
    await connection.execute("SET lock_timeout = 0")
    for statement in migration.sql.split(";\n"):
        if statement.strip() and not await execute_for_partitions(connection, statement):
            await connection.execute(statement)
    await record_migration(connection, migration)


async def record_migration(connection: asyncpg.Connection, migration: Migration) -> None:
    values = [migration.name, migration.sha256]
    if migration.number < FIRST_CLASSIFIED:  # the table does not have the other columns yet
        await connection.execute(
            "INSERT INTO schema_migrations (name, sha256) VALUES ($1, $2)", *values
        )
        return
    await connection.execute(
        "INSERT INTO schema_migrations (name, sha256, requires, release) VALUES ($1, $2, $3, $4)",
        *values,
        migration.requires,
        VERSION,
    )


async def _require_no_older_nodes(connection: asyncpg.Connection, migration: Migration) -> None:
    if nodes := await _list_older_nodes(connection, migration):
        raise StoreError(
            f"{migration.name} was not applied: {', '.join(nodes)} cannot run after it. Upgrade"
            " all nodes first. A node that died is removed from the list after an hour; to ignore"
            " it, use --force"
        )


async def _list_older_nodes(connection: asyncpg.Connection, migration: Migration) -> list[str]:
    if await connection.fetchval("SELECT to_regclass('nodes')") is None:
        return []
    rows = await connection.fetch(_SELECT_OLDER_NODES, migration.requires)
    return [row[0] for row in rows]


async def open_checked_connection(
    url: str, limits: SessionLimits = COPY_LIMITS
) -> asyncpg.Connection:
    """Connect for a command. The database URL's timeouts are for requests and do not apply."""
    try:
        connection = await open_connection(
            url, timeout=_CONNECT_TIMEOUT_SECONDS, settings=limits.to_settings()
        )
    except (*DATABASE_ERRORS, ValueError) as error:
        raise StoreError(f"the database cannot be reached: {summarize_error(error)}") from error
    try:
        if connection.get_server_version().major < MIN_POSTGRES_VERSION:
            raise StoreError(f"PostgreSQL {MIN_POSTGRES_VERSION} or newer is required")
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
