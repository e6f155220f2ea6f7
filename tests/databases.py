"""Test databases, emptied and reused, and connections that outlive the pool that opened them.

A database is a copy of a migrated template. A new connection starts a new PostgreSQL process, which
reads the catalogs and prepares every statement again. That is more work than most tests do. When a
pool closes a connection, the connection is therefore reset and kept for the next pool with the same
database and settings.
"""

import asyncio
import contextlib
import itertools
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final, Self

import asyncpg

from tapgate.runtime.store import connect as connect_module
from tapgate.runtime.store import database as database_module
from tapgate.runtime.store import signals as signals_module
from tapgate.runtime.store.failures import DATABASE_ERRORS
from tapgate.runtime.store.url import DatabaseUrl, parse_url

_MAX_KEPT: Final = 16  # per database and settings
_MAX_STATEMENTS: Final = 400  # per connection
_RESET: Final = """
    SELECT pg_advisory_unlock_all();
    CLOSE ALL;
    UNLISTEN *;
    RESET ALL;
    DISCARD TEMP;
    DISCARD SEQUENCES"""

_open_connection = connect_module.open_connection
_connect = connect_module.connect_once

#: A database's hosts and name.
_DatabaseAddress = tuple[tuple[tuple[str | None, int | None], ...], str | None]
#: Plans depend on settings, so a connection is only reused with the same settings.
_Key = tuple[_DatabaseAddress, tuple[tuple[str, str], ...]]


#: Connection settings for a database, in addition to the caller's settings.
_session_settings: dict[_DatabaseAddress, Mapping[str, str]] = {}


def _get_address(target: DatabaseUrl) -> _DatabaseAddress:
    return tuple(target.hosts), target.database


@contextlib.contextmanager
def use_session_settings(url: str, settings: Mapping[str, str]) -> Iterator[None]:
    """Apply settings to connections that are opened within the block, also to reused ones."""
    address = _get_address(parse_url(url))
    _session_settings[address] = settings
    try:
        yield
    finally:
        del _session_settings[address]


class KeptConnection(connect_module.Connection):
    """Connection that `close` keeps for the next pool and `terminate` closes."""

    __slots__ = ("_cache", "_codecs", "_key")

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._codecs: set[tuple[str, str]] = set()
        self._cache: ConnectionCache | None = None
        self._key: _Key | None = None

    def keep_in(self, cache: "ConnectionCache", key: _Key) -> None:
        self._cache, self._key = cache, key

    async def begin(
        self, settings: Mapping[str, str], seconds: float, command_timeout: float | None
    ) -> None:
        """Apply the next session's settings.

        Raises one of DATABASE_ERRORS if a test has terminated the connection.
        """
        self._config = self._config._replace(command_timeout=command_timeout)
        await self.fetchrow(
            connect_module.APPLY_SETTINGS, list(settings), list(settings.values()), timeout=seconds
        )

    async def set_type_codec(self, typename: str, *, schema: str = "public", **codec: Any) -> None:
        """Set each codec once, because setting it again would drop all prepared statements."""
        if (schema, typename) not in self._codecs:
            await super().set_type_codec(typename, schema=schema, **codec)
            self._codecs.add((schema, typename))

    async def close(self, *, timeout: float | None = None) -> None:  # noqa: ASYNC109
        is_kept = self._cache and self._key and await self._cache.keep(self, self._key)
        if not is_kept:
            await super().close(timeout=timeout)

    def get_reset_query(self) -> str:
        return _RESET


class ConnectionCache:
    """Idle connections to the registered databases, on the event loop that all tests share."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._addresses: set[_DatabaseAddress] = set()
        self._idle: defaultdict[_Key, list[KeptConnection]] = defaultdict(list)

    def install(self) -> None:
        connect_module.connect_once = self._connect
        database_module.open_connection = self._open_connection
        signals_module.open_connection = self._open_connection

    def uninstall(self) -> None:
        connect_module.connect_once = _connect
        database_module.open_connection = _open_connection
        signals_module.open_connection = _open_connection
        for connection in itertools.chain.from_iterable(self._idle.values()):
            connection.terminate()

    def register(self, url: str) -> None:
        """Keep closed connections to this database from now on."""
        self._addresses.add(_get_address(parse_url(url)))

    def discard(self, url: str) -> None:
        """Terminate the connections to a database that is about to be dropped."""
        address = _get_address(parse_url(url))
        self._addresses.discard(address)
        for key in [key for key in self._idle if key[0] == address]:
            for connection in self._idle.pop(key):
                connection.terminate()

    def list_pids(self, url: str) -> list[int]:
        """Return the PostgreSQL process IDs for idle connections to a database."""
        address = _get_address(parse_url(url))
        return [
            connection.get_server_pid()
            for key, idle in self._idle.items()
            for connection in idle
            if key[0] == address and not connection.is_closed()
        ]

    async def keep(self, connection: KeptConnection, key: _Key) -> bool:
        if (
            connection.is_closed()
            or key[0] not in self._addresses
            or asyncio.get_running_loop() is not self._loop
            or len(self._idle[key]) >= _MAX_KEPT
        ):
            return False
        try:
            connection._termination_listeners.clear()
            await connection.reset()
        except DATABASE_ERRORS:
            return False
        except BaseException:  # canceled: a statement may still be running on the connection
            connection.terminate()
            raise
        self._idle[key].append(connection)
        return True

    def _is_registered(self, target: DatabaseUrl) -> bool:
        return (
            _get_address(target) in self._addresses
            and target.target_session_attrs is None
            and asyncio.get_running_loop() is self._loop
        )

    async def _open_connection(
        self,
        url: str,
        *,
        timeout: float,  # noqa: ASYNC109
        command_timeout: float | None = None,
        defaults: Mapping[str, str] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> asyncpg.Connection:
        target = parse_url(url)
        settings = {**(settings or {}), **_session_settings.get(_get_address(target), {})}
        session = {**(defaults or {}), **target.settings, **settings}
        key = _get_address(target), tuple(session.items())
        if self._is_registered(target):
            while self._idle[key]:
                connection = self._idle[key].pop()
                try:
                    await connection.begin(session, timeout, command_timeout)
                except DATABASE_ERRORS:
                    connection.terminate()
                except BaseException:  # canceled
                    connection.terminate()
                    raise
                else:
                    return connection
        connection = await _open_connection(
            url,
            timeout=timeout,
            command_timeout=command_timeout,
            defaults=defaults,
            settings=settings,
        )
        if type(connection) is KeptConnection:  # isinstance is true for any asyncpg connection
            connection.keep_in(self, key)
        return connection

    async def _connect(
        self, target: DatabaseUrl, seconds: float, command_timeout: float | None
    ) -> asyncpg.Connection:
        if not self._is_registered(target):
            return await _connect(target, seconds, command_timeout)
        host, port = target.hosts[0]
        return await asyncpg.connect(
            target.dsn,
            host=host,
            port=port,
            user=target.user,
            password=target.password,
            database=target.database,
            timeout=seconds,
            command_timeout=command_timeout,
            statement_cache_size=_MAX_STATEMENTS,
            max_cached_statement_lifetime=0,
            connection_class=KeptConnection,
            record_class=connect_module.Record,
        )


TEMPLATE_DATABASE = "template_of_tests"
_sequence = itertools.count(1)


#: The tables without their partitions.
SELECT_TABLES_SQL = """
    SELECT oid::regclass::text FROM pg_class
    WHERE relnamespace::regnamespace::text IN ('public', 'messenger')
      AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY 1"""
ADD_COLUMN_SQL = "ALTER TABLE {table} ADD added_column text NOT NULL DEFAULT 'added';"


async def add_columns(url: str) -> None:
    """Add a column to each table, as a later release may: `EXPANDED_SCHEMA=1 pytest`."""
    connection = await asyncpg.connect(url)
    try:
        for row in await connection.fetch(SELECT_TABLES_SQL):
            await connection.execute(ADD_COLUMN_SQL.format(table=row[0]))
    finally:
        await connection.close()


def build_database_url(database: str, server_url: str) -> str:
    """Return the URL of another database on the same server."""
    return server_url.replace("@/tapgate?", f"@/{database}?")


#: The catalogs that describe a schema, each with a condition for the rows that belong to one.
_CATALOGS: Final = {
    "pg_class": "oid >= 16384",
    "pg_attribute": "attrelid >= 16384",
    "pg_type": "oid >= 16384",
    "pg_enum": "true",
    "pg_trigger": "true",
    "pg_constraint": "true",
    "pg_proc": """oid >= 16384 AND NOT pg_is_other_temp_schema(pronamespace)
                  AND pronamespace <> pg_my_temp_schema()""",
}
_NEWEST_CHANGE_SQL: Final = "SELECT greatest({})::text".format(
    ", ".join(
        f"(SELECT max(xmin::text::bigint) FROM {catalog} WHERE {condition})"
        for catalog, condition in _CATALOGS.items()
    )
)
#: Values that change only with the schema: the number of rows in each catalog, and whether one is
#: newer than the template. A database with a changed schema is not reused, even if it is empty.
_SCHEMA_FINGERPRINT_SQL: Final = " UNION ALL ".join(
    [
        "SELECT count(*), false FROM pg_db_role_setting",
        *(
            f"SELECT count(*), bool_or(age(xmin) < age({{newest}}))"
            f" FROM {catalog} WHERE {condition}"
            for catalog, condition in _CATALOGS.items()
        ),
    ]
)
#: Without indexes, whose number would make the query slow.
_TABLE_BYTES_SQL = """
    SELECT sum(pg_relation_size(oid)) FROM pg_class WHERE relkind IN ('r', 't') AND oid >= 16384"""
_MAX_REUSED_TABLE_BYTES = 10_000_000
#: A shorter test cannot have written as much.
_MIN_MEASURED_SECONDS = 0.3

_LIST_TABLES_SQL = """
    SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
    WHERE schemaname IN ('public', 'messenger') AND tablename <> 'schema_migrations'"""
_LIST_SEQUENCES_SQL = """
    SELECT format('%I.%I', schemaname, sequencename) AS name, start_value FROM pg_sequences
    WHERE schemaname = 'public'"""


class DatabaseCleaner:
    """Cleaner that empties one database between tests over a persistent connection.

    The open connection keeps PostgreSQL's catalog and plan caches, which take longer to fill than
    the tables take to empty.
    """

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    @classmethod
    async def connect(cls, url: str, seeds: "SeedRows") -> Self:
        connection = await asyncpg.connect(url)
        try:
            await cls._prepare(connection, seeds)
        except asyncpg.PostgresError:  # the test made the database read-only
            connection.terminate()
            raise
        return cls(connection)

    @staticmethod
    async def _prepare(connection: asyncpg.Connection, seeds: "SeedRows") -> None:
        statements = [
            f"DELETE FROM {row['name']};" for row in await connection.fetch(_LIST_TABLES_SQL)
        ]
        statements += [
            f"PERFORM setval('{row['name']}', {row['start_value']}, false);"
            for row in await connection.fetch(_LIST_SEQUENCES_SQL)
        ]
        statements += [
            f"INSERT INTO {table} SELECT ($row${row}$row$::{table}).*;"
            for table, rows in seeds.items()
            for row in rows
        ]
        await connection.execute("SET session_replication_role = replica")
        await connection.execute(
            f"""CREATE FUNCTION pg_temp.reset() RETURNS void LANGUAGE plpgsql
                AS $$ BEGIN {" ".join(statements)} END $$"""
        )

    async def fingerprint_schema(self, sql: str) -> tuple[object, ...]:
        return tuple(map(tuple, await self._connection.fetch(sql)))

    async def measure_tables(self) -> int:
        """Return the size of all tables in bytes."""
        size: int = await self._connection.fetchval(_TABLE_BYTES_SQL)
        return size

    async def reset(self) -> None:
        """Empty all tables, except for the rows that migrations insert."""
        await self._connection.fetchrow("SELECT pg_temp.reset()")

    @property
    def pid(self) -> int:
        pid: int = self._connection.get_server_pid()
        return pid

    def close(self) -> None:
        self._connection.terminate()


#: The rows that migrations insert, as text, by table.
SeedRows = dict[str, list[str]]


class ScratchDatabases:
    """Copies of a migrated database, each used by one test at a time.

    Creating and dropping a copy takes longer than most tests. A used copy is therefore emptied and
    reused, unless the test changed the schema or left a large amount of data.
    """

    def __init__(
        self, connection: asyncpg.Connection, url: str, connection_cache: ConnectionCache
    ) -> None:
        self._connection = connection
        self._url = url
        self._connection_cache = connection_cache
        self._fingerprint_sql = ""
        self._schema: tuple[object, ...] = ()
        self._acquired_at: dict[str, float] = {}
        self._seeds: SeedRows = {}
        self._free: list[str] = []
        self._cleaners: dict[str, DatabaseCleaner] = {}

    async def read_template(self) -> None:
        """Read the template's schema fingerprint and the rows that migrations inserted."""
        template = await asyncpg.connect(build_database_url(TEMPLATE_DATABASE, self._url))
        try:
            newest = await template.fetchval(_NEWEST_CHANGE_SQL)
            self._fingerprint_sql = _SCHEMA_FINGERPRINT_SQL.format(newest=f"'{newest}'::xid")
            self._schema = tuple(map(tuple, await template.fetch(self._fingerprint_sql)))
            for row in await template.fetch(_LIST_TABLES_SQL):
                rows = await template.fetch(f"SELECT seed::text FROM {row['name']} seed")
                if rows:
                    self._seeds[row["name"]] = [seed for (seed,) in rows]
        finally:
            await template.close()

    async def acquire(self) -> str:
        name = self._free.pop() if self._free else await self._create()
        self._acquired_at[name] = time.monotonic()
        return name

    async def copy(self, template: str) -> str:
        """Copy a database with its schema and rows, and return the new name."""
        if cleaner := self._cleaners.pop(template, None):
            cleaner.close()
        self._connection_cache.discard(build_database_url(template, self._url))
        name = await self._create(template)
        self._acquired_at[name] = time.monotonic()
        return name

    async def _create(self, template: str = TEMPLATE_DATABASE) -> str:
        name = f"test_{next(_sequence)}"
        await self._connection.execute(
            f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY"
        )
        self._connection_cache.register(build_database_url(name, self._url))
        return name

    async def release(self, name: str) -> None:
        cleaner = self._cleaners.get(name)
        await self._connection.execute(
            """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE datname = $1 AND pid <> ALL ($2)""",
            name,
            [
                *self._connection_cache.list_pids(build_database_url(name, self._url)),
                *([cleaner.pid] if cleaner else []),
            ],
        )
        if await self._reset(name):
            self._free.append(name)
            return
        if cleaner := self._cleaners.pop(name, None):
            cleaner.close()
        self._connection_cache.discard(build_database_url(name, self._url))
        await self._connection.execute(f"DROP DATABASE {name} WITH (FORCE)")

    async def _reset(self, name: str) -> bool:
        try:
            if name not in self._cleaners:
                self._cleaners[name] = await DatabaseCleaner.connect(
                    build_database_url(name, self._url), self._seeds
                )
            cleaner = self._cleaners[name]
            if await cleaner.fingerprint_schema(self._fingerprint_sql) != self._schema:
                return False
            seconds = time.monotonic() - self._acquired_at[name]
            if seconds > _MIN_MEASURED_SECONDS and (
                await cleaner.measure_tables() > _MAX_REUSED_TABLE_BYTES
            ):
                return False
            await cleaner.reset()
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            return False  # the test terminated the cleaner's connection
        return True

    def close(self) -> None:
        for cleaner in self._cleaners.values():
            cleaner.close()
