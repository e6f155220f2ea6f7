"""Saves a database while it is used: one snapshot, seen by `pg_dump` and by what is counted.

What a manifest says is read in the snapshot that is dumped, so a backup knows what is in it.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable
from typing import BinaryIO

import asyncpg
import msgspec

from tapgate import VERSION
from tapgate.store import StoreError
from tapgate.store.backup_file import BackupWriter, Manifest
from tapgate.store.database import FAILURES
from tapgate.store.embedded import PROGRAMS
from tapgate.store.libpq import Address, address
from tapgate.store.migrate import connect, in_one_line

SCHEMAS = ("public", "messenger")
#: What is saved must come back with these values too, where there is such a table.
FIGURES = {
    "entries: sum of amounts": ("entries", "SELECT sum(amount)::text FROM public.entries"),
    "accounts: sum of balances": ("accounts", "SELECT sum(balance)::text FROM public.accounts"),
    "accounts: sum of holds": ("accounts", "SELECT sum(held)::text FROM public.accounts"),
    "transactions: newest": ("transactions", "SELECT max(id)::text FROM public.transactions"),
    "audit log: head": (
        "audit_head",
        "SELECT sequence || ' ' || encode(hash, 'hex') FROM public.audit_head",
    ),
}
NOTHING = "none"

_CHUNK = 1 << 20
#: More would take the processor from the payments for a file that is hardly smaller.
_COMPRESSION = "gzip:1"
_TABLE_BEGUN = re.compile(r'dumping contents of table "(.+)"')

#: Is told how many bytes are written, and of which table.
Told = Callable[[int, str], None]


async def save(url: str, file: BinaryIO, told: Told) -> Manifest:
    """Write a backup of the whole database as of now."""
    try:
        async with _snapshot(url) as (connection, snapshot):
            written = BackupWriter(file)
            manifest = await _manifest(connection)
            await _dump(address(url), snapshot, written, told)
            manifest = msgspec.structs.replace(manifest, archive_bytes=written.written)
            written.finish(manifest)
            return manifest
    except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise StoreError(f"the database cannot be saved: {in_one_line(error)}") from error


@contextlib.asynccontextmanager
async def _snapshot(url: str) -> AsyncIterator[tuple[asyncpg.Connection, str]]:
    """Kept for as long as `pg_dump` needs, which opens it by its name."""
    connection = await connect(url)
    try:
        for timeout in ("idle_in_transaction_session_timeout", "statement_timeout"):
            await connection.execute(f"SET {timeout} = 0")
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            yield connection, await connection.fetchval("SELECT pg_export_snapshot()")
    finally:
        with contextlib.suppress(*FAILURES):
            await connection.close(timeout=1)


async def _manifest(connection: asyncpg.Connection) -> Manifest:
    """All of it but how long the archive will be."""
    tables = [
        row["name"]
        for row in await connection.fetch(
            """SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
               WHERE schemaname = ANY ($1) ORDER BY name""",
            SCHEMAS,
        )
    ]
    if "public.schema_migrations" not in tables:
        raise StoreError("there is nothing to save: the database has no tables of Tapgate")
    installation = {}
    if "public.installation" in tables:
        rows = await connection.fetch("SELECT name, value FROM public.installation")
        installation = {row["name"]: row["value"] for row in rows}
    migrations = await connection.fetch("SELECT name, sha256 FROM public.schema_migrations")
    return Manifest(
        tapgate=VERSION,
        postgres=await connection.fetchval("SELECT current_setting('server_version')"),
        # When the database transaction began: before its snapshot, so that it promises no more
        # than there is.
        moment=await connection.fetchval("SELECT now()"),
        migrations={row["name"]: row["sha256"] for row in migrations},
        currency=installation.get("currency"),
        secret_fingerprint=installation.get("secret_fingerprint"),
        tables={
            table: await connection.fetchval(f"SELECT count(*) FROM {table}") for table in tables
        },
        figures={
            name: await connection.fetchval(sql) or NOTHING
            for name, (table, sql) in FIGURES.items()
            if f"public.{table}" in tables
        },
        archive_bytes=0,
    )


async def _dump(where: Address, snapshot: str, written: BackupWriter, told: Told) -> None:
    schemas = [f"--schema={schema}" for schema in SCHEMAS]
    process = await asyncio.create_subprocess_exec(
        PROGRAMS / "pg_dump",
        "--format=custom",
        f"--compress={_COMPRESSION}",
        f"--snapshot={snapshot}",
        *schemas,
        "--encoding=UTF8",
        "--no-password",
        "--verbose",
        f"--dbname={where.url}",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=where.environ,
        start_new_session=True,  # Ctrl-C in the terminal is for Tapgate, which ends it
    )
    assert process.stdout is not None
    assert process.stderr is not None
    words = _Words(process.stderr)
    listening = asyncio.create_task(words.listen())
    try:
        while data := await process.stdout.read(_CHUNK):
            written.write(data)
            told(written.written, words.table)
        await listening
        if await process.wait() != 0:
            raise StoreError(f"pg_dump failed: {words.last}")
    finally:
        listening.cancel()
        await end(process)


class _Words:
    """What `pg_dump` says on its way: the table it is at, in the end what is wrong."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream
        self.table = ""
        self.last = ""

    async def listen(self) -> None:
        async for line in self._stream:
            said = line.decode(errors="replace").strip()
            if found := _TABLE_BEGUN.search(said):
                self.table = found[1]
            self.last = said.removeprefix("pg_dump: ").removeprefix("error: ")


async def end(process: asyncio.subprocess.Process) -> None:
    """However far it is; nothing if it has ended by itself."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()
