"""Databases of tests: copies of a migrated template, emptied and reused."""

import itertools
from typing import Self

import asyncpg

from kept_connections import ConnectionCache

TEMPLATE_DATABASE = "template_of_tests"
_sequence = itertools.count(1)


def build_database_url(database: str, server_url: str) -> str:
    """Return the URL of another database on the same server."""
    return server_url.replace("@/tapgate?", f"@/{database}?")


#: Values that change only with the schema. A database whose schema was changed is not reused,
#: even if it is empty.
_SCHEMA_FINGERPRINT_SQL = """
    SELECT (SELECT max(xmin::text::bigint) FROM pg_class WHERE oid >= 16384),
           (SELECT count(*) FROM pg_class WHERE oid >= 16384),
           (SELECT max(xmin::text::bigint) FROM pg_attribute WHERE attrelid >= 16384),
           (SELECT max(xmin::text::bigint) FROM pg_trigger),
           (SELECT max(xmin::text::bigint) FROM pg_constraint),
           (SELECT max(xmin::text::bigint) FROM pg_proc
            WHERE oid >= 16384 AND NOT pg_is_other_temp_schema(pronamespace)
              AND pronamespace <> pg_my_temp_schema()),
           (SELECT count(*) FROM pg_db_role_setting)"""
_MAX_REUSED_DATABASE_BYTES = 30_000_000

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
    async def connect(cls, url: str) -> Self:
        connection = await asyncpg.connect(url)
        statements = [
            f"DELETE FROM {row['name']};" for row in await connection.fetch(_LIST_TABLES_SQL)
        ]
        statements += [
            f"PERFORM setval('{row['name']}', {row['start_value']}, false);"
            for row in await connection.fetch(_LIST_SEQUENCES_SQL)
        ]
        await connection.execute("SET session_replication_role = replica")
        await connection.execute(
            f"""CREATE FUNCTION pg_temp.empty_all() RETURNS void LANGUAGE plpgsql
                AS $$ BEGIN {" ".join(statements)} END $$"""
        )
        return cls(connection)

    async def fingerprint_schema(self) -> tuple[object, ...]:
        return tuple(await self._connection.fetchrow(_SCHEMA_FINGERPRINT_SQL))

    async def reset(self, seeds: "SeedRows") -> None:
        await self._connection.execute("SELECT pg_temp.empty_all()")
        for table, rows in seeds.items():
            placeholders = ", ".join(f"${index}" for index in range(1, len(rows[0]) + 1))
            await self._connection.executemany(
                f"INSERT INTO {table} ({', '.join(rows[0].keys())}) VALUES ({placeholders})",
                [tuple(row) for row in rows],
            )

    @property
    def pid(self) -> int:
        pid: int = self._connection.get_server_pid()
        return pid

    def close(self) -> None:
        self._connection.terminate()


#: The rows that migrations insert.
SeedRows = dict[str, list[asyncpg.Record]]


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
        self._schema: tuple[object, ...] = ()
        self._seeds: SeedRows = {}
        self._free: list[str] = []
        self._cleaners: dict[str, DatabaseCleaner] = {}

    async def read_template(self) -> None:
        """Read the template's schema fingerprint and the rows that migrations inserted."""
        template = await asyncpg.connect(build_database_url(TEMPLATE_DATABASE, self._url))
        try:
            self._schema = tuple(await template.fetchrow(_SCHEMA_FINGERPRINT_SQL))
            for row in await template.fetch(_LIST_TABLES_SQL):
                rows = await template.fetch(f"SELECT * FROM {row['name']}")
                if rows:
                    self._seeds[row["name"]] = rows
        finally:
            await template.close()

    async def acquire(self) -> str:
        if self._free:
            return self._free.pop()
        name = f"test_{next(_sequence)}"
        await self._connection.execute(
            f"CREATE DATABASE {name} TEMPLATE {TEMPLATE_DATABASE} STRATEGY FILE_COPY"
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
        size = await self._connection.fetchval("SELECT pg_database_size($1)", name)
        if size > _MAX_REUSED_DATABASE_BYTES:
            return False
        try:
            if name not in self._cleaners:
                self._cleaners[name] = await DatabaseCleaner.connect(
                    build_database_url(name, self._url)
                )
            if await self._cleaners[name].fingerprint_schema() != self._schema:
                return False
            await self._cleaners[name].reset(self._seeds)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            return False  # the test terminated the cleaner's connection
        return True

    def close(self) -> None:
        for cleaner in self._cleaners.values():
            cleaner.close()
