"""What tests share: one embedded PostgreSQL per test process, one fresh database per test."""

import itertools
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from tapgate.store.database import Database
from tapgate.store.embedded import EmbeddedPostgres
from tapgate.store.migrate import migrate

_numbers = itertools.count(1)


def url_of(database: str, server_url: str) -> str:
    """The URL of another database on the same server."""
    return server_url.replace("@/tapgate?", f"@/{database}?")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a running server; also its database `tapgate`, which is empty."""
    server = EmbeddedPostgres(tmp_path_factory.mktemp("store"))
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture(scope="session")
async def template(postgres: str) -> AsyncIterator[str]:
    """The name of a migrated database, copied for each test."""
    connection = await asyncpg.connect(postgres)
    try:
        # What a test writes need not outlive the machine.
        await connection.execute("ALTER SYSTEM SET fsync = off")
        await connection.execute("SELECT pg_reload_conf()")
        await connection.execute("CREATE DATABASE template_of_tests")
        await migrate(url_of("template_of_tests", postgres))
        yield "template_of_tests"
    finally:
        await connection.close()


@pytest.fixture
async def database_url(postgres: str, template: str) -> AsyncIterator[str]:
    name = f"test_{next(_numbers)}"
    connection = await asyncpg.connect(postgres)
    try:
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        yield url_of(name, postgres)
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await connection.close()


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = await Database.connect(database_url)
    try:
        yield database
    finally:
        await database.close()
