"""Sources that are searched for secrets: tables, the PostgreSQL log, processes, and files."""

import contextlib
import re
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import asyncpg
import msgspec
import psutil

from databases import use_session_settings
from secret_leaks import allowlist
from tapgate.runtime.store.database import Database
from tapgate.server.child_process import build_command

#: A measured duration can have a PIN's digits.
_DURATION = re.compile(rb'"duration_us":\d+')


class Source(NamedTuple):
    name: str
    data: bytes
    #: False for random bytes, which may contain any four digits by chance.
    search_short_secrets: bool = True


#: Settings that make PostgreSQL log every statement with its parameters, and full error details.
_VERBOSE_LOG_SETTINGS = {
    "log_statement": "all",
    "log_min_messages": "debug1",
    "log_min_error_statement": "debug1",
    "log_error_verbosity": "verbose",
    "log_parameter_max_length": "-1",
    "log_parameter_max_length_on_error": "-1",
}
#: Process IDs at the start of lines and in signal acknowledgments. They may look like a PIN.
_LOG_PID = re.compile(rb"(?<= UTC) \[[0-9]+\]|(?<=[0-9a-f]{16}) [0-9]+(?=')")

_TABLES_SQL = """
    SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
    WHERE schemaname IN ('public', 'messenger')"""
_BYTEA_COLUMNS_SQL = """
    SELECT format('%I.%I', table_schema, table_name) AS table, column_name AS column
    FROM information_schema.columns
    WHERE table_schema IN ('public', 'messenger') AND data_type = 'bytea'"""
_SCHEMA_SQL = """
    SELECT prosrc FROM pg_proc WHERE pronamespace::regnamespace::text IN ('public', 'messenger')
    UNION ALL SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef
    UNION ALL SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conbin IS NOT NULL
    UNION ALL SELECT description FROM pg_description WHERE objoid >= 16384
    UNION ALL SELECT array_to_string(setconfig, ' ') FROM pg_db_role_setting"""
_ACTIVITY_SQL = """
    SELECT concat_ws(' ', application_name, query) FROM pg_stat_activity
    WHERE datname = current_database()"""


@contextlib.asynccontextmanager
async def log_all_statements(url: str) -> AsyncIterator[Path]:
    """Log every statement on new connections, and yield the PostgreSQL log path."""
    connection = await asyncpg.connect(url)
    try:
        name = await connection.fetchval("SELECT current_database()")
        for setting, value in _VERBOSE_LOG_SETTINGS.items():
            await connection.execute(f"ALTER DATABASE {name} SET {setting} = '{value}'")
        (socket_folder,) = parse_qs(urlsplit(url).query)["host"]  # under the data directory
        # The database's settings do not apply to connections that are reused.
        with use_session_settings(url, _VERBOSE_LOG_SETTINGS):
            yield Path(socket_folder).parent / "postgres.log"
        await connection.execute(f"ALTER DATABASE {name} RESET ALL")
    finally:
        await connection.close()


def read_log_since(log: Path, start: int) -> Source:
    with log.open("rb") as file:
        file.seek(start)
        return Source("PostgreSQL's log", _LOG_PID.sub(b"", file.read()))


async def read_database(url: str) -> list[Source]:
    """Read every row of every table, the schema, and the current statements."""
    database = await Database.connect(url)
    try:
        async with database.connection() as connection:
            return await _read_database(connection)
    finally:
        await database.close()


async def _read_database(connection: asyncpg.Connection) -> list[Source]:
    sources = []
    for (name,) in await connection.fetch(_TABLES_SQL):
        rows = await connection.fetch(f"SELECT to_json(t)::text FROM {name} t")
        text = _DURATION.sub(b"", _join_rows(rows))
        sources.append(Source(f"table {name}", text))
    for table, column in await connection.fetch(_BYTEA_COLUMNS_SQL):
        rows = await connection.fetch(f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL")
        sources += _split_text_and_binary(f"bytea {table}.{column}", [row[0] for row in rows])
    sources.append(Source("the schema", _join_rows(await connection.fetch(_SCHEMA_SQL))))
    sources.append(Source("statements", _join_rows(await connection.fetch(_ACTIVITY_SQL))))
    return sources


def _join_rows(rows: list[asyncpg.Record]) -> bytes:
    return "\n".join(str(row[0]) for row in rows).encode()


def _split_text_and_binary(name: str, values: list[bytes]) -> list[Source]:
    """Split values into text and binary, each joined into one source for faster search."""
    texts = [_decode_text(value) for value in values]
    return [
        Source(name, b"\n".join(text for text in texts if text is not None)),
        Source(
            name,
            b"\n".join(value for value, text in zip(values, texts, strict=True) if text is None),
            search_short_secrets=False,
        ),
    ]


def _decode_text(value: bytes) -> bytes | None:
    """Return the value as text, decompressed if necessary, or None if it is binary."""
    with contextlib.suppress(zlib.error):
        value = zlib.decompress(value)
    with contextlib.suppress(UnicodeDecodeError):
        return value.decode().encode()
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
        return str(msgspec.msgpack.decode(value)).encode()
    return None


def read_processes() -> Iterator[Source]:
    """Read child process command lines, and service and PostgreSQL environments."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            command_line, environ = process.cmdline(), process.environ()
            if not command_line:
                continue  # the process is exiting
            yield Source(f"command line of {command_line[:3]}", " ".join(command_line).encode())
            module_name = _get_module_name(command_line)
            if module_name in allowlist.ALLOWED_IN_ENVIRONMENTS or "postgres" in command_line[0]:
                allowed = allowlist.ALLOWED_IN_ENVIRONMENTS.get(module_name, {})
                value = [f"{name}={text}" for name, text in environ.items() if name not in allowed]
                yield Source(
                    f"environment of {module_name or 'PostgreSQL'}", "\n".join(value).encode()
                )


def _get_module_name(command_line: Sequence[str]) -> str:
    """Return a service's module, or an empty string for other processes."""
    command = build_command("")[:-1]
    return command_line[len(command)] if command_line[: len(command)] == command else ""


def read_files(folder: Path) -> Iterator[Source]:
    """Read all files except allowed files and PostgreSQL's data, which is read through SQL."""
    for path in sorted(folder.rglob("*")):
        relative_path = path.relative_to(folder)
        if path.is_file() and "pgdata" not in relative_path.parts:
            if str(relative_path) in allowlist.ALLOWED_IN_FILES:
                found = path.stat().st_mode & 0o077
                assert found == 0, f"{relative_path} is accessible to other users"
            else:
                yield Source(f"file {relative_path}", path.read_bytes())
