"""Shared fixtures: one embedded PostgreSQL per test process, one clean database per test.

Fixtures import what they need when they are used, so that a file of pure tests starts fast.
"""

from __future__ import annotations

import asyncio
import fcntl
import gc
import itertools
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import uvloop

import markers
import module_patches
import proofs
import rewriting
import temporary_files
from start_order import get_start_rank

if TYPE_CHECKING:
    import httpx2
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

    from databases import ScratchDatabases
    from harness import Harness
    from tapgate.core.settings import Settings
    from tapgate.http.api.services import Services
    from tapgate.runtime.store.database import Database

temporary_files.keep_in_memory()
module_patches.install()

# The event loop of production, which is also faster.
asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())

# asyncio replaces the default handler for every coroutine that pytest runs, but no other one.
signal.signal(signal.SIGINT, partial(signal.default_int_handler))

#: Like in a worker process: see `tapgate.http.worker`.
_GC_THRESHOLD = 50_000

_DAY_SECONDS = 24 * 60 * 60
_MAX_TEST_SECONDS = 300
_sequence = itertools.count(1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    gc.disable()  # what is collected is never garbage
    rewriting.rewrite_share(session.config)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files without a selected test: importing all files takes seconds in each process."""
    if collection_path.suffix != ".py":
        return None
    file = collection_path.relative_to(config.rootpath).as_posix()
    return proofs.is_irrelevant(file, config.option.markexpr) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: get_start_rank(item.nodeid))
    has_capabilities = not {*re.findall(r"\w+", config.option.markexpr)} <= {"not", "proof"}
    for item in items:
        test = item.nodeid.partition("[")[0]
        if proofs.is_proof(test):
            item.add_marker("proof")
        if has_capabilities:
            for name in markers.list_markers(test):
                item.add_marker(name)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    from scheduling import Scheduling

    config.option.loadscopereorder = False  # keep the order of the collection
    return Scheduling(config, log)


def pytest_collection_finish() -> None:
    """Freeze modules and collected tests, so the garbage collector never scans them."""
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Wait until after midnight UTC if a test could still be running then.

    Daily and monthly counters reset at midnight, so no test may run across midnight. Tests of the
    reset have their own clock.
    """
    seconds_to_midnight = _DAY_SECONDS - time.time() % _DAY_SECONDS
    if seconds_to_midnight < _MAX_TEST_SECONDS:
        time.sleep(seconds_to_midnight + 0.1)


@pytest.fixture
def public_tmp_path() -> Iterator[Path]:
    """Yield a temporary folder that other system users can access.

    pytest's `tmp_path` is accessible only to its owner.
    """
    with tempfile.TemporaryDirectory(prefix="tapgate-test-") as name:
        yield Path(name)


@pytest.fixture(scope="session")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data folder with a migrated database, created once for all test processes.

    initdb and the migrations take seconds, so the other processes wait for the first one.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    cluster = folder / "cluster"
    with (folder / "cluster.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not cluster.exists():
            from tapgate.runtime.store.embedded import EmbeddedPostgres

            unfinished = folder / "cluster.unfinished"
            server = EmbeddedPostgres(unfinished)
            try:
                await _prepare_database(server.start())
            finally:
                server.stop()
            unfinished.rename(cluster)
    return cluster


async def _prepare_database(url: str) -> None:
    import asyncpg

    from tapgate.runtime.store.migrate import migrate

    await migrate(url)
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(_ADVANCE_TRANSACTION_IDS_SQL)
    finally:
        await connection.close()


@pytest.fixture
def data_dir(public_tmp_path: Path, cluster: Path) -> Path:
    """Return a copy of the data folder for this test's server."""
    subprocess.run(["cp", "-a", cluster, public_tmp_path / "data"], check=True)
    return public_tmp_path / "data"


@pytest.fixture(scope="session")
def postgres(cluster: Path) -> Iterator[str]:
    """Yield a URL for a running server's migrated database `tapgate`."""
    from tapgate.runtime.store.embedded import EmbeddedPostgres

    with tempfile.TemporaryDirectory(prefix="tapgate-test-") as name:
        data_dir = Path(name, "data")
        subprocess.run(["cp", "-a", cluster, data_dir], check=True)
        server = EmbeddedPostgres(data_dir)
        try:
            yield server.start()
        finally:
            server.stop()


@pytest.fixture(scope="session")
async def scratch_databases(postgres: str) -> AsyncIterator[ScratchDatabases]:
    import asyncpg

    from databases import (
        TEMPLATE_DATABASE,
        ConnectionCache,
        ScratchDatabases,
        add_columns,
        build_database_url,
    )
    from tapgate.runtime.store.embedded import DATABASE_NAME

    connection = await asyncpg.connect(postgres)
    try:
        # Test data need not survive a crash.
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            await connection.execute(f"ALTER SYSTEM SET {setting} = off")
        # Tests have few rows in many databases, each of which autovacuum would check every minute.
        await connection.execute("ALTER SYSTEM SET autovacuum_naptime = '1 h'")
        await connection.execute("SELECT pg_reload_conf()")
        await connection.execute(
            f"CREATE DATABASE {TEMPLATE_DATABASE} TEMPLATE {DATABASE_NAME} STRATEGY FILE_COPY"
        )
        if "EXPANDED_SCHEMA" in os.environ:
            await add_columns(build_database_url(TEMPLATE_DATABASE, postgres))
        connection_cache = ConnectionCache()
        databases = ScratchDatabases(connection, postgres, connection_cache)
        await databases.read_template()
        connection_cache.install()
        yield databases
        connection_cache.uninstall()
        databases.close()
    finally:
        await connection.close()


#: Advances PostgreSQL's transaction IDs, which start in the hundreds, to five digits. Tests that
#: search logs for PINs could mistake a four-digit ID for a PIN.
_ADVANCE_TRANSACTION_IDS_SQL = """
    DO $$ BEGIN
        FOR n IN 1..10000 LOOP
            PERFORM pg_current_xact_id();
            COMMIT;
        END LOOP;
    END $$"""


@pytest.fixture
async def empty_database_url(postgres: str) -> AsyncIterator[str]:
    """Yield a URL for a database without tables."""
    import asyncpg

    from databases import build_database_url

    name = f"empty_{next(_sequence)}"
    connection = await asyncpg.connect(postgres)
    try:
        await connection.execute(f"CREATE DATABASE {name} STRATEGY FILE_COPY")
        yield build_database_url(name, postgres)
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await connection.close()


@pytest.fixture
async def database_url(postgres: str, scratch_databases: ScratchDatabases) -> AsyncIterator[str]:
    from databases import build_database_url

    name = await scratch_databases.acquire()
    try:
        yield build_database_url(name, postgres)
    finally:
        await scratch_databases.release(name)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    from tapgate.runtime.store.database import Database

    database = await Database.connect(database_url)
    try:
        yield database
    finally:
        await database.close()


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    """Return development settings with rate limits that no test reaches by accident."""
    import msgspec

    from tapgate.core.settings import dev_secrets, load_settings

    # Written here without fsync, to save time in each test.
    secrets = msgspec.json.encode(dev_secrets.generate_secrets())
    (tmp_path / "secrets.json").write_bytes(secrets)
    return load_settings(
        {
            "TAPGATE_DATA_DIR": str(tmp_path),
            "TAPGATE_DATABASE_URL": database_url,
            "TAPGATE_RATE_LIMIT": "100000",
            "TAPGATE_RATE_BURST": "100000",
        }
    )


@pytest.fixture
async def services(settings: Settings, database_url: str) -> AsyncIterator[Services]:
    """Yield a gateway process's services, on a database with the default rules."""
    from tapgate.core.id_generator import IdGenerator
    from tapgate.ledger.rules.loaded_rules import insert_defaults
    from tapgate.server.gateway import open_gateway_services

    async with open_gateway_services(settings, database_url) as services:
        async with services.transaction() as tx:
            await insert_defaults(tx, settings.currency, IdGenerator(1023))
        yield services


@pytest.fixture
async def client(services: Services) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield an in-process client for the complete gateway, without sockets."""
    async with _open_client(services) as client:
        yield client


@pytest.fixture
async def other_services(services: Services, database_url: str) -> AsyncIterator[Services]:
    """Yield the services of a second gateway process on the same database."""
    from tapgate.server.gateway import open_gateway_services

    async with open_gateway_services(services.settings, database_url) as other:
        yield other


@pytest.fixture
async def other_process_client(other_services: Services) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a client for the second gateway process."""
    async with _open_client(other_services) as client:
        yield client


def _open_client(services: Services) -> httpx2.AsyncClient:
    import httpx2

    from drivers.in_process import AppTransport
    from tapgate_sandbox.gateway import create_app

    transport = AppTransport(create_app(services))
    return httpx2.AsyncClient(transport=transport, base_url="http://gateway")


@pytest.fixture
def harness(services: Services, client: httpx2.AsyncClient) -> Harness:
    from harness import Harness

    return Harness(services, client)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the values that tests record as a `figure`, including values from xdist workers."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                for name, value in report.user_properties:
                    if name == "figure":
                        terminalreporter.line(str(value))
