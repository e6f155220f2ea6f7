"""Restores a backup into an empty database, all or nothing.

One database transaction checks that the database is empty, creates the schema from this version's
migrations, loads the rows, compares them with the manifest, revokes sessions and one-time
codes, and commits. Nothing from the backup is executed: its names are looked up in the new schema,
and its rows are COPY data.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection
from datetime import datetime

import asyncpg

from tapgate.core.id_generator import get_time
from tapgate.runtime.store import StoreError
from tapgate.runtime.store.backup import CONTROL_TOTALS, COPY_SETTINGS, NO_VALUE
from tapgate.runtime.store.backup_file import BackupReader, Manifest
from tapgate.runtime.store.failures import DATABASE_ERRORS, summarize_error
from tapgate.runtime.store.migrate import (
    MIGRATION_LOCK_KEY,
    create_schema,
    open_checked_connection,
    require_copied_keys,
)
from tapgate.runtime.store.migration_plan import require_known_migrations
from tapgate.runtime.store.partitions import create_months
from tapgate.runtime.store.revocation import advance_delivery_numbers, revoke_credentials
from tapgate.runtime.store.schema import (
    MESSENGER_SCHEMA,
    Schema,
    get_main_schema,
    prepare_for_loading,
    read_schema,
)
from tapgate_client.clock import Clock, system_clock

_MAX_LISTED_NAMES = 5

_SELECT_OBJECTS = """
    SELECT c.oid::regclass::text
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = ANY ($1) AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
      AND NOT EXISTS (SELECT FROM pg_depend d
                      WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                        AND d.deptype IN ('e', 'i', 'a'))
    ORDER BY c.relname"""

#: Receives a text that describes the progress.
ProgressCallback = Callable[[str], None]


def require_restorable(
    manifest: Manifest, *, key_ids: Collection[str], currency: str, clock: Clock = system_clock
) -> None:
    """Raise StoreError if the migrations or settings do not match, or if IDs could be reused."""
    require_known_migrations(manifest.migrations)
    if manifest.secret_fingerprint not in (None, *key_ids):
        raise StoreError(
            f"the backup uses secret key {manifest.secret_fingerprint!a}, but the configured key is"
            f" {', '.join(key_ids)}. Set TAPGATE_SECRET_KEY to its key, or copy the original"
            " secrets.json to the data folder"
        )
    if manifest.currency not in (None, currency):
        raise StoreError(
            f"the backup's currency is {manifest.currency!a}. Set TAPGATE_CURRENCY to it"
        )
    if manifest.moment > clock():
        raise StoreError("this machine's clock is behind the backup time")


async def restore_backup(
    url: str, source: BackupReader, report: ProgressCallback, clock: Clock = system_clock
) -> list[str]:
    """Restore a backup into the database, which must be empty.

    Return the backup's table names that Tapgate does not define, which are skipped.
    """
    connection = await open_checked_connection(url)
    try:
        await connection.execute(COPY_SETTINGS)
        transaction = connection.transaction()
        await transaction.start()
        skipped = await _restore_all(connection, source, report, clock())
        tx = await connection.fetchval("SELECT pg_current_xact_id()::text")
    except StoreError as error:
        raise StoreError(f"nothing was restored: {error}") from error
    except DATABASE_ERRORS as error:
        raise StoreError(f"nothing was restored: {summarize_error(error)}") from error
    else:
        await _commit(transaction, connection, url, tx)
        return skipped
    finally:
        connection.terminate()


async def _commit(
    transaction: asyncpg.transaction.Transaction, connection: asyncpg.Connection, url: str, tx: str
) -> None:
    """Commit. After a lost connection or cancellation, find out whether the commit succeeded."""
    try:
        await transaction.commit()
    except (asyncio.CancelledError, *DATABASE_ERRORS) as error:
        connection.terminate()
        if await _is_committed(url, tx):
            return  # interrupted or disconnected after the commit
        if isinstance(error, asyncio.CancelledError):
            raise
        raise StoreError(f"nothing was restored: {summarize_error(error)}") from error


async def _is_committed(url: str, tx: str) -> bool:
    """Return whether the database transaction is committed. Raise StoreError if unknown."""
    try:
        connection = await open_checked_connection(url)
        try:
            # The restoring session holds this lock until its database transaction has ended.
            await connection.execute("SELECT pg_advisory_lock($1)", MIGRATION_LOCK_KEY)
            status = await connection.fetchval("SELECT pg_xact_status($1::text::xid8)", tx)
        finally:
            await connection.close(timeout=1)
    except (StoreError, *DATABASE_ERRORS) as error:
        raise StoreError(
            "the connection was lost during the commit, so the database may or may not be restored."
            " Try again: if the database was restored, the command fails"
        ) from error
    return bool(status == "committed")


async def _restore_all(
    connection: asyncpg.Connection, source: BackupReader, report: ProgressCallback, now: datetime
) -> list[str]:
    manifest = source.manifest
    await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK_KEY)
    await _require_empty(connection)
    await create_schema(connection, manifest.migrations)
    await _create_months(connection, manifest)
    schema = await read_schema(connection)
    if missing := sorted(schema.tables.keys() - manifest.tables.keys()):
        raise StoreError(f"the backup is missing {_format_names(missing)}")
    restore_steps = await prepare_for_loading(connection, schema)
    skipped = await _load_tables(connection, source, schema, report)
    for name, (last, is_called) in manifest.sequences.items():
        if name in schema.sequences:
            await connection.execute(
                "SELECT setval($1::text::regclass, $2, $3)", schema.sequences[name], last, is_called
            )
    for number, (label, statement) in enumerate(restore_steps, 1):
        report(f"{label}, step {number} of {len(restore_steps)}")
        await connection.execute(statement)
    report("comparing with the backup")
    await _compare_with_manifest(connection, manifest, schema)
    require_copied_keys([row[0] for row in await connection.fetch("SELECT name FROM installation")])
    await revoke_credentials(connection)
    await advance_delivery_numbers(connection, now)
    return skipped


async def _create_months(connection: asyncpg.Connection, manifest: Manifest) -> None:
    """Create the backup's months, so that they can be archived as before."""
    if manifest.first_month_id is not None:
        await create_months(connection, get_time(manifest.first_month_id))
        await create_months(connection, manifest.moment)


async def _require_empty(connection: asyncpg.Connection) -> None:
    schemas = [await get_main_schema(connection), MESSENGER_SCHEMA]
    found = [row[0] for row in await connection.fetch(_SELECT_OBJECTS, schemas)]
    if found:
        raise StoreError(f"the database is not empty: it contains {_format_names(found)}")


async def _load_tables(
    connection: asyncpg.Connection, source: BackupReader, schema: Schema, report: ProgressCallback
) -> list[str]:
    async def report_rows(name: str, rows: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for data in rows:
            report(f"{source.percent} %, {name}")
            yield data

    skipped, loaded = [], set()
    async with contextlib.aclosing(source.iter_tables()) as tables:
        async for name, columns, rows in tables:
            table = schema.tables.get(name)
            if table is None:
                skipped.append(name)
                async for _ in rows:
                    pass
                continue
            if name in loaded or sorted(columns) != sorted(table.columns):
                raise StoreError(f"the columns of {name} do not match Tapgate's table")
            loaded.add(name)
            await connection.copy_to_table(
                table.name,
                schema_name=table.schema,
                columns=columns,
                source=report_rows(name, rows),
            )
    return skipped


async def _compare_with_manifest(
    connection: asyncpg.Connection, manifest: Manifest, schema: Schema
) -> None:
    for name, table in schema.tables.items():
        found = await connection.fetchval(f"SELECT count(*) FROM {table.quoted}")
        _require_same(f"{name}: rows", str(found), str(manifest.tables[name]))
    for name, (table_name, sql) in CONTROL_TOTALS.items():
        if name in manifest.figures and table_name in schema.tables:
            found = await connection.fetchval(sql) or NO_VALUE
            _require_same(name, found, manifest.figures[name])
    rows = await connection.fetch("SELECT name, sha256 FROM schema_migrations")
    if {row["name"]: row["sha256"] for row in rows} != manifest.migrations:
        raise StoreError("the restored migrations do not match the backup")


def _require_same(label: str, restored: str, expected: str) -> None:
    if restored != expected:
        raise StoreError(f"{label}: restored {restored!a}, but the backup has {expected!a}")


def _format_names(names: list[str]) -> str:
    return f"{', '.join(names[:_MAX_LISTED_NAMES])} ({len(names)} in total)"


async def analyze(url: str) -> None:
    """Collect planner statistics, which are not part of a backup."""
    connection = await open_checked_connection(url)
    try:
        await connection.execute("ANALYZE")
    finally:
        await connection.close()
