"""Shared fixtures: one embedded PostgreSQL per test process, one clean database per test."""

import asyncio
import fcntl
import functools
import gc
import importlib.util
import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import asyncpg
import httpcore2
import httpx2
import hypothesis
import msgspec
import pytest
import structlog
import uvloop
from httpx2._config import DEFAULT_TIMEOUT_CONFIG
from hypothesis.internal.conjecture import providers
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

import examples
import markers
import proofs
import rewriting
import temporary_files
from builders.auth import FAST_ARGON2
from databases import (
    TEMPLATE_DATABASE,
    ConnectionCache,
    ScratchDatabases,
    add_columns,
    build_database_url,
)
from drivers.in_process import AppTransport
from harness import Harness
from tapgate.auth import authenticator as authenticator_module
from tapgate.auth.passwords import Passwords
from tapgate.core.id_generator import IdGenerator
from tapgate.core.settings import Settings, dev_secrets, load_settings
from tapgate.http import backlog_metrics as backlog_metrics_module
from tapgate.http.api.services import Services
from tapgate.ledger.rules.loaded_rules import insert_defaults
from tapgate.runtime import health as health_module
from tapgate.runtime.store import database as database_module
from tapgate.runtime.store import embedded as embedded_module
from tapgate.runtime.store import signals as signals_module
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.embedded import DATABASE_NAME, EmbeddedPostgres
from tapgate.runtime.store.migrate import migrate
from tapgate.server.gateway import open_gateway_services
from tapgate_sandbox.gateway import create_app

temporary_files.keep_in_memory()

#: There is no deadline, because an example's duration depends on the machine's load.
#: Health checks are off, because sharing a function-scoped fixture between examples is intended.
hypothesis.settings.register_profile(
    "tests", deadline=None, suppress_health_check=list(hypothesis.HealthCheck)
)
hypothesis.settings.load_profile("tests")

# Every process would parse all modules to use their constants in examples.
if not examples.is_complete():
    providers._get_local_constants = lambda: providers._local_constants

#: Production fails fast when the database is down or another process hangs. Tests get longer
#: timeouts, because a loaded machine may stall for some seconds.
database_module.DATABASE_TIMEOUT_SECONDS = 30.0
signals_module.ACK_TIMEOUT_SECONDS = 30.0
health_module.PROBE_TIMEOUT_SECONDS = 30.0  # type: ignore[misc]
backlog_metrics_module.TIMEOUT_SECONDS = 30.0  # type: ignore[misc]

# A client without an explicit timeout waits up to a minute instead of five seconds.
for _phase in ("connect", "read", "write", "pool"):
    setattr(DEFAULT_TIMEOUT_CONFIG, _phase, 60.0)

#: Test servers have many small databases, possibly in memory. PostgreSQL searches all buffers
#: when a table or database is dropped.
_SERVER_SETTINGS = {"shared_buffers": "128MB", "min_wal_size": "80MB", "max_wal_size": "256MB"}
_build_server_settings = embedded_module._build_server_settings
embedded_module._build_server_settings = lambda data_dir: (
    _build_server_settings(data_dir) | _SERVER_SETTINGS
)

# Every httpx2 client would read all root certificates, even if it never uses TLS.
httpcore2.default_ssl_context = functools.cache(httpcore2.default_ssl_context)

# The event loop of production, which is also faster.
asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())

#: Most tests log an administrator in. Hashing the password as in production would take longer than
#: the rest of such a test; tests/auth covers it.
authenticator_module.Passwords = partial(Passwords, FAST_ARGON2)  # type: ignore[assignment, misc]

# structlog's default renders each traceback with rich, which takes half a second.
structlog.configure(
    processors=[
        structlog.processors.add_log_level,
        structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback
        ),
    ]
)

# asyncio replaces the default handler for every coroutine that pytest runs, but no other one.
signal.signal(signal.SIGINT, partial(signal.default_int_handler))

# httpx2 imports sniffio for every request. If sniffio is not installed, every import attempt
# searches sys.path; None in sys.modules makes the import fail immediately.
if importlib.util.find_spec("sniffio") is None:
    sys.modules["sniffio"] = None  # type: ignore[assignment]

#: Like in a worker process: see `tapgate.http.worker`.
_GC_THRESHOLD = 50_000

_DAY_SECONDS = 24 * 60 * 60
_MAX_TEST_SECONDS = 300
_sequence = itertools.count(1)


#: Folders and files whose tests one process runs, because they share a fixture that takes long to
#: create, such as a demo installation. Longest first: their tests start before all others, so that
#: all processes finish at about the same time.
_SINGLE_PROCESS_PATHS = (
    "tests/browser/",
    "tests/journeys/",
    "tests/server/gateway/",
    "tests/torture/test_cluster.py",
    "tests/torture/",
    "tests/server/test_supervisor.py",
    "tests/runtime/store/test_embedded_postgres.py",
    "tests/fuzz/",
    "tests/sandbox/demo/",
    "tests/docs/",
)


#: Files with long tests, each of which any process may run. They start next.
_LONG_TEST_PATHS = (
    "tests/bench/",
    "tests/generators/",
    "tests/runtime/store/test_schema_upgrade.py",
    "tests/messenger/understanding/",
    "tests/runtime/store/test_backup",
    "tests/sandbox/test_production.py",
    "tests/sites/console/test_restricted.py",
    "tests/http/api/test_worst_case_requests.py",
    "tests/secret_leaks/",
    "tests/test_readme.py",
    "tests/cli/test_cli.py",
    "tests/ledger/archive/",
    "tests/cli/test_backup.py",
    "tests/messenger/test_startup.py",
    "tests/business/payments/wallets/test_statement_files.py",
    "tests/business/payments/transactions/test_lists.py",
    "tests/cli/rekey/",
)
_START_ORDER = (*_SINGLE_PROCESS_PATHS, *_LONG_TEST_PATHS)


def _get_single_process_path(nodeid: str) -> str | None:
    return next((path for path in _SINGLE_PROCESS_PATHS if nodeid.startswith(path)), None)


def _get_start_rank(item: pytest.Item) -> int:
    ranks = (rank for rank, path in enumerate(_START_ORDER) if item.nodeid.startswith(path))
    return next(ranks, len(_START_ORDER))


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
    items.sort(key=_get_start_rank)
    has_capabilities = not {*re.findall(r"\w+", config.option.markexpr)} <= {"not", "proof"}
    for item in items:
        test = item.nodeid.partition("[")[0]
        if proofs.is_proof(test):
            item.add_marker("proof")
        if has_capabilities:
            for name in markers.list_markers(test):
                item.add_marker(name)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    config.option.loadscopereorder = False  # keep the order of the collection
    return Scheduling(config, log)


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Runs each test in any process, except tests that share an expensive fixture."""

    def _split_scope(self, nodeid: str) -> str:
        return _get_single_process_path(nodeid) or nodeid


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
            unfinished = folder / "cluster.unfinished"
            server = EmbeddedPostgres(unfinished)
            try:
                await _prepare_database(server.start())
            finally:
                server.stop()
            unfinished.rename(cluster)
    return cluster


async def _prepare_database(url: str) -> None:
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
    name = await scratch_databases.acquire()
    try:
        yield build_database_url(name, postgres)
    finally:
        await scratch_databases.release(name)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = await Database.connect(database_url)
    try:
        yield database
    finally:
        await database.close()


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    """Return development settings with rate limits that no test reaches by accident."""
    # Written here without fsync, to save time in each test.
    secrets = msgspec.json.encode(dev_secrets._generate_secrets())
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
    async with open_gateway_services(settings, database_url) as services:
        async with services.transaction() as tx:
            await insert_defaults(tx, settings.currency, IdGenerator(1023))
        yield services


@pytest.fixture
async def client(services: Services) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield an in-process client for the complete gateway, without sockets."""
    transport = AppTransport(create_app(services))
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
        yield client


@pytest.fixture
async def other_process_client(
    services: Services, database_url: str
) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a client for a second gateway instance on the same database."""
    async with open_gateway_services(services.settings, database_url) as other:
        transport = AppTransport(create_app(other))
        async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
            yield client


@pytest.fixture
def harness(services: Services, client: httpx2.AsyncClient) -> Harness:
    return Harness(services, client)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the values that tests record as a `figure`, including values from xdist workers."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                for name, value in report.user_properties:
                    if name == "figure":
                        terminalreporter.line(str(value))
