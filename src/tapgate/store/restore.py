"""Fills an empty database from a backup: all of it, or nothing.

One database transaction looks whether the database is empty, fills it, compares what came back with
what was saved, ends what must not come back to life, and commits. `pg_restore` could only do the
second; so it writes its script, and `psql` is told when that is whole.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import BinaryIO

from tapgate.clock import Clock, system_clock
from tapgate.ids import first_id_at
from tapgate.store import StoreError
from tapgate.store.backup import FIGURES, NOTHING, SCHEMAS, end
from tapgate.store.backup_file import Manifest
from tapgate.store.database import FAILURES
from tapgate.store.embedded import PROGRAMS
from tapgate.store.libpq import Address, address
from tapgate.store.migrate import LOCK_KEY, connect, refuse_unknown

_CHUNK = 1 << 20
#: What a new database has already, and what a PostgreSQL before 17 does not know.
_LEFT_OUT = frozenset({b"CREATE SCHEMA public;\n", b"SET transaction_timeout = 0;\n"})
#: The tables' rows follow: nothing is left out from there on.
_FIRST_ROWS = b"COPY "

_BEGIN = f"""\
SET client_min_messages = warning;
BEGIN;
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0;
SELECT pg_advisory_xact_lock({LOCK_KEY});
DO $empty$
DECLARE
    found text;
    number bigint;
BEGIN
    SELECT string_agg(name, ', ' ORDER BY name) FILTER (WHERE place <= 5), count(*)
    INTO found, number
    FROM (SELECT c.oid::regclass::text AS name, row_number() OVER (ORDER BY c.relname) AS place
          FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE n.nspname IN ({", ".join(f"'{schema}'" for schema in SCHEMAS)})
            AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
            AND NOT EXISTS (SELECT FROM pg_depend d
                            WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                              AND d.deptype IN ('e', 'i', 'a'))) AS there;
    IF number > 0 THEN
        RAISE EXCEPTION 'the database is not empty: it has % (% in all)', found, number;
    END IF;
    IF to_regnamespace('public') IS NULL THEN
        CREATE SCHEMA public;
    END IF;
END $empty$;
"""

#: Each was ended by somebody after the backup, or it may have been. Whoever needs one gets another.
_ENDED = {
    "public.sessions": "UPDATE public.sessions SET ended_at = now() WHERE ended_at IS NULL",
    "public.refresh_tokens": "DELETE FROM public.refresh_tokens",
    "public.one_time_codes": "DELETE FROM public.one_time_codes",
    "public.restricted_access": "DELETE FROM public.restricted_access",
    "messenger.codes": "DELETE FROM messenger.codes",
}
#: Receivers know a delivery by its number. Those given out after the backup are known to some of
#: them, so the next is one that none of them can have seen.
_NEXT_DELIVERY = """
    PERFORM setval('public.deliveries_id_seq', greatest(last_value, {first}))
    FROM public.deliveries_id_seq"""

#: Said when all before it was done: the number of the database transaction.
_TELL = b"SELECT pg_current_xact_id() AS tx \\gset\n\\echo :tx\n"
_COMMIT = b"COMMIT;\n"
_GONE = (BrokenPipeError, ConnectionResetError)

#: Is told how many bytes of how many were read.
Told = Callable[[int, int], None]


def refuse_unfit(
    manifest: Manifest, *, secret_fingerprint: str, currency: str, clock: Clock = system_clock
) -> None:
    """What could be restored but never be run, or would give identifiers out twice."""
    refuse_unknown(manifest.migrations)
    if manifest.secret_fingerprint not in (None, secret_fingerprint):
        raise StoreError(
            f"the backup belongs to the secret key {manifest.secret_fingerprint}, and that of these"
            f" settings is {secret_fingerprint}: give the right TAPGATE_SECRET_KEY, or put the"
            " secrets.json that was kept into the data folder"
        )
    if manifest.currency not in (None, currency):
        raise StoreError(f"the backup's currency is {manifest.currency}: set TAPGATE_CURRENCY")
    if manifest.moment > clock():
        raise StoreError("the clock of this machine is behind the moment of the backup")


async def load(
    url: str, file: BinaryIO, manifest: Manifest, told: Told, clock: Clock = system_clock
) -> None:
    """Fill the database, which must be empty, with what is in the file."""
    await (await connect(url)).close()  # says in one line what keeps us from it
    file.seek(0)
    async with contextlib.AsyncExitStack() as stack:
        psql = await _psql(address(url))
        assert psql.stdin is not None
        assert psql.stdout is not None
        stack.push_async_callback(_hang_up, psql.stdin)
        stack.push_async_callback(end, psql)
        script = await _script(file)
        stack.push_async_callback(end, script)
        complaint = asyncio.create_task(_all_of(psql.stderr))
        stack.callback(complaint.cancel)
        with contextlib.suppress(*_GONE):  # it tells why
            await _feed(psql.stdin, script, file, manifest, told, clock())
        tx = (await psql.stdout.readline()).decode().strip()
        if not tx or not await _commit(psql, url, tx):
            raise StoreError(f"nothing was restored: {_reason(await complaint)}")


async def _commit(psql: asyncio.subprocess.Process, url: str, tx: str) -> bool:
    """Without this last word all of it is undone, whatever becomes of this process."""
    assert psql.stdin is not None
    psql.stdin.write(_COMMIT)
    psql.stdin.close()
    try:
        return await psql.wait() == 0 or await _is_committed(url, tx)
    except asyncio.CancelledError:
        await end(psql)
        if not await _is_committed(url, tx):
            raise
        return True  # the interrupt came too late


async def _is_committed(url: str, tx: str) -> bool:
    """Asked of the database itself: the answer may have been lost with the connection, and the
    program's status with the program."""
    try:
        connection = await connect(url)
        try:
            # Which that session holds for as long as it is undecided.
            await connection.execute("SELECT pg_advisory_lock($1)", LOCK_KEY)
            found = await connection.fetchval("SELECT pg_xact_status($1::text::xid8)", tx)
        finally:
            await connection.close(timeout=1)
    except (StoreError, *FAILURES) as error:
        raise StoreError(
            "it is not known whether the database was restored, since it was lost on the last step:"
            " restore once more, which is refused if it was"
        ) from error
    return bool(found == "committed")


async def _hang_up(stream: asyncio.StreamWriter) -> None:
    stream.close()
    with contextlib.suppress(*_GONE):
        await stream.wait_closed()


async def _feed(
    psql: asyncio.StreamWriter,
    script: asyncio.subprocess.Process,
    file: BinaryIO,
    manifest: Manifest,
    told: Told,
    now: datetime,
) -> None:
    assert script.stdout is not None
    size = os.fstat(file.fileno()).st_size

    async def say(data: bytes) -> None:
        psql.write(data)
        await psql.drain()

    await say(_BEGIN.encode())
    while line := await script.stdout.readline():
        if line not in _LEFT_OUT:
            await say(line)
        if line.startswith(_FIRST_ROWS):
            break
    while data := await script.stdout.read(_CHUNK):
        told(os.lseek(file.fileno(), 0, os.SEEK_CUR), size)
        await say(data)
    complaint = await _all_of(script.stderr)
    if await script.wait() != 0:
        raise StoreError(f"nothing was restored: pg_restore failed: {_reason(complaint)}")
    for statement in _closing(manifest, now):
        await say(statement.encode())
    await say(_TELL)


def _closing(manifest: Manifest, now: datetime) -> Iterator[str]:
    yield "DO $check$\nDECLARE\n    found text;\nBEGIN\n"
    for table, rows in manifest.tables.items():
        yield _same(f"{table}: rows", f"SELECT count(*)::text FROM {table}", str(rows))
    for name, value in manifest.figures.items():
        if name in FIGURES:
            yield _same(name, FIGURES[name][1], value)
    for table, statement in _ENDED.items():
        if table in manifest.tables:
            yield f"    {statement};\n"
    if "public.deliveries" in manifest.tables:
        yield f"{_NEXT_DELIVERY.format(first=first_id_at(now))};\n"
    yield "END $check$;\n"


def _same(what: str, sql: str, saved: str) -> str:
    complaint = _quoted(f"{what}: %L came back, %L were saved")
    return (
        f"    found := coalesce(({sql}), '{NOTHING}');\n"
        f"    IF found <> {_quoted(saved)} THEN\n"
        f"        RAISE EXCEPTION USING MESSAGE = format({complaint}, found, {_quoted(saved)});\n"
        "    END IF;\n"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


async def _psql(where: Address) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        PROGRAMS / "psql",
        "--no-psqlrc",
        "--quiet",
        "--no-password",
        "--set=ON_ERROR_STOP=1",
        f"--output={os.devnull}",
        f"--dbname={where.url}",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=where.environ,
        start_new_session=True,
    )


async def _script(file: BinaryIO) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        PROGRAMS / "pg_restore",
        "--format=custom",
        "--file=-",
        "--no-owner",
        "--no-privileges",
        "--no-comments",
        "--no-tablespaces",
        stdin=file,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=address("postgresql://").environ,
        limit=_CHUNK,
        start_new_session=True,
    )


async def _all_of(stream: asyncio.StreamReader | None) -> str:
    assert stream is not None
    return (await stream.read()).decode(errors="replace")


def _reason(complaint: str) -> str:
    """The first error, without where in the script it was."""
    lines = complaint.strip().splitlines() or ["it ended"]
    first = next((line for line in lines if "error" in line.lower()), lines[0])
    return first.partition("ERROR:")[2].strip() or first


async def analyze(url: str) -> None:
    """What plans are made from is no part of a backup."""
    connection = await connect(url)
    try:
        await connection.execute("ANALYZE")
    finally:
        await connection.close()
