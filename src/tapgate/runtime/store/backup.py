"""Online database backup, read in a single snapshot.

The manifest is computed in the same snapshot as the rows, so a restore can be verified against it.
"""

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import BinaryIO

import asyncpg

from tapgate import VERSION
from tapgate.core.vault import Vault
from tapgate.runtime.store import StoreError
from tapgate.runtime.store.backup_file import BackupWriter, Manifest
from tapgate.runtime.store.failures import DATABASE_ERRORS, summarize_error
from tapgate.runtime.store.migrate import open_checked_connection
from tapgate.runtime.store.partitions import list_partitions
from tapgate.runtime.store.schema import Schema, read_schema

#: Label to table and query. A restore compares these totals, as it compares row counts, except for
#: tables that do not exist.
CONTROL_TOTALS = {
    "entries: sum of amounts": ("entries", "SELECT sum(amount)::text FROM entries"),
    "accounts: sum of balances": ("accounts", "SELECT sum(balance)::text FROM accounts"),
    "accounts: sum of holds": ("accounts", "SELECT sum(held)::text FROM accounts"),
    "transactions: newest": ("transactions", "SELECT max(id)::text FROM transactions"),
    "audit log: head": (
        "audit_head",
        "SELECT sequence || ' ' || encode(hash, 'hex') FROM audit_head",
    ),
}
NO_VALUE = "none"

#: Use fixed value formats, and fail instead of omitting rows under row security, whatever the role
#: or database defaults.
COPY_SETTINGS = """
    SET datestyle = 'ISO';
    SET intervalstyle = 'postgres';
    SET extra_float_digits = 3;
    SET row_security = off"""

#: Receives the number of bytes written so far and the current table name.
ProgressCallback = Callable[[int, str], None]


async def create_backup(
    url: str, file: BinaryIO, vault: Vault, report: ProgressCallback
) -> tuple[Manifest, int]:
    """Back up the gateway and messenger schemas, sealed with the secret key.

    Return the manifest and the backup size in bytes.
    """
    try:
        async with _open_snapshot(url) as connection:
            schema = await read_schema(connection)
            await _require_exported(connection, schema)
            manifest = await build_manifest(connection, schema)
            if manifest.secret_fingerprint not in (None, *vault.key_names):
                raise StoreError(
                    f"the database uses secret key {manifest.secret_fingerprint}, but the"
                    f" configured key is {vault.describe_keys()}. Set TAPGATE_SECRET_KEY to the"
                    " installation's key"
                )
            writer = BackupWriter(file, vault)
            writer.write_manifest(manifest)
            for name in manifest.tables:
                await _save_table(connection, schema, name, writer, report)
            writer.finish()
            return manifest, writer.bytes_written
    except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise StoreError(f"the database cannot be backed up: {summarize_error(error)}") from error


async def _require_exported(connection: asyncpg.Connection, schema: Schema) -> None:
    """Refuse a backup without a month's rows if they are only in archive tables."""
    if "archived_months" not in schema.tables:
        return
    month = await connection.fetchval(
        "SELECT min(name) FROM archived_months WHERE files IS NULL OR NOT is_detached"
    )
    if month is not None:
        raise StoreError(
            f"{month} is being archived, and its rows would not be part of the backup. Wait for"
            " `tapgate archive`, or run it again if it was interrupted"
        )


async def _save_table(
    connection: asyncpg.Connection,
    schema: Schema,
    name: str,
    writer: BackupWriter,
    report: ProgressCallback,
) -> None:
    table = schema.tables[name]

    async def write(data: bytes) -> None:
        writer.write_rows(data)
        report(writer.bytes_written, name)

    writer.begin_table(name, list(table.columns))
    columns = ", ".join(f'"{column}"' for column in table.columns)
    # A query, because a partitioned table cannot be copied otherwise.
    await connection.copy_from_query(f"SELECT {columns} FROM {table.quoted}", output=write)
    writer.end_table()


@contextlib.asynccontextmanager
async def _open_snapshot(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await open_checked_connection(url)
    try:
        await connection.execute(COPY_SETTINGS)
        has_ledger = await connection.fetchval(
            "SELECT to_regclass('entries') IS NOT NULL AND to_regclass('transactions') IS NOT NULL"
        )
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            if has_ledger:
                # Before the snapshot: if a month is archived after it, its partition would
                # disappear from the snapshot, but the month's sums would not be in it yet.
                await connection.execute(
                    "LOCK TABLE ONLY entries, ONLY transactions IN ACCESS SHARE MODE"
                )
            yield connection
    finally:
        with contextlib.suppress(*DATABASE_ERRORS):
            await connection.close(timeout=1)


async def build_manifest(connection: asyncpg.Connection, schema: Schema) -> Manifest:
    tables = schema.tables
    if "schema_migrations" not in tables:
        raise StoreError("nothing to back up: the database has no Tapgate tables")
    installation = {}
    if "installation" in tables:
        rows = await connection.fetch("SELECT name, value FROM installation")
        installation = {row["name"]: row["value"] for row in rows}
    migrations = await connection.fetch("SELECT name, sha256 FROM schema_migrations")
    sequences = {
        name: await connection.fetchrow(f"SELECT last_value, is_called FROM {quoted}")
        for name, quoted in schema.sequences.items()
    }
    return Manifest(
        tapgate=VERSION,
        postgres=await connection.fetchval("SELECT current_setting('server_version')"),
        # The start of the database transaction precedes its snapshot, so everything acknowledged
        # before this time is in the backup.
        moment=await connection.fetchval("SELECT now()"),
        migrations={row["name"]: row["sha256"] for row in migrations},
        currency=installation.get("currency"),
        secret_fingerprint=installation.get("secret_fingerprint"),
        tables={
            name: await connection.fetchval(f"SELECT count(*) FROM {table.quoted}")
            for name, table in tables.items()
        },
        figures={
            name: await connection.fetchval(sql) or NO_VALUE
            for name, (table, sql) in CONTROL_TOTALS.items()
            if table in tables
        },
        sequences={name: (row["last_value"], row["is_called"]) for name, row in sequences.items()},
        first_month_id=(await list_partitions(connection, "transactions"))[0].upper,
    )
