"""Payments while tables are locked, the server is read-only, or a migration waits for a lock."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from builders.ledger import LedgerDriver, build_p2p, build_request_key, require_balanced_books
from drivers.database_sessions import set_read_only
from drivers.network_faults import run_proxy
from runtime.store.conftest import build_tcp_url
from tapgate.ledger.commands import Command, Outcome
from tapgate.ledger.engine import group_commit
from tapgate.runtime.store import database as database_module
from tapgate.runtime.store import migrate as migrate_module
from tapgate.runtime.store import migration_plan
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.migrate import migrate
from tapgate.runtime.store.server_status import get_server_status
from tapgate_client.errors import ApiError, Code

_MIGRATION = "9999_blocked.sql"


@pytest.fixture
async def hasty_ledger(database_url: str, database: Database) -> AsyncIterator[LedgerDriver]:
    """Yield a ledger that waits only briefly for locks."""
    ledger = await LedgerDriver.open(f"{database_url}&lock_timeout=100ms", database)
    try:
        yield ledger
        await require_balanced_books(database)
    finally:
        await ledger.close()


@pytest.fixture
async def other_session(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(
        database_url, server_settings={"application_name": "analyst"}
    )
    yield connection
    await connection.close()


async def build_transfer(ledger: LedgerDriver, name: str = "one") -> Command:
    payer, payee = await ledger.create_subscriber(10_00), await ledger.create_subscriber()
    return build_p2p(payer, payee, 1_00, idempotency_key=build_request_key(name))


async def submit_to_outage(ledger: LedgerDriver, *commands: Command) -> None:
    results = await asyncio.gather(
        *(ledger.submit(command) for command in commands), return_exceptions=True
    )
    for result in results:
        assert isinstance(result, ApiError), result
        assert (result.code, result.headers) == (Code.SERVICE_UNAVAILABLE, {"Retry-After": "1"})


async def test_locked_table_fails_pending_commands_and_later_ones_succeed(
    hasty_ledger: LedgerDriver,
    other_session: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = hasty_ledger
    monkeypatch.setattr(group_commit, "MAX_OUTAGE_SECONDS", 0.0)
    monkeypatch.setattr(group_commit, "MAX_BATCH_SIZE", 1)
    commands = [await build_transfer(ledger, f"command {number}") for number in range(5)]
    async with other_session.transaction():
        await other_session.execute("LOCK TABLE transactions IN ACCESS EXCLUSIVE MODE")
        await submit_to_outage(ledger, *commands)
        assert not ledger.ledger.queue_length
        assert ledger.ledger.batch_stats.batches == 0
    outcomes = await asyncio.gather(*(ledger.submit(command) for command in commands))
    assert {(outcome.code, outcome.replayed) for outcome in outcomes} == {(None, False)}


async def test_read_only_server_is_503_and_the_retry_is_executed_once(
    ledger: LedgerDriver, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "RETIRE_INTERVAL_SECONDS", 0.0)
    command, first = await build_transfer(ledger), await build_transfer(ledger, "first")
    assert (await ledger.submit(first)).code is None
    try:
        await set_read_only(database_url, is_read_only=True)
        # Some of the ledger's sessions may not have read the server's configuration yet.
        failures = 0
        while failures < 10:
            failed = await submit_or_none(ledger, first) is None
            failures = failures + 1 if failed else 0
            await asyncio.sleep(0.01)
        await submit_to_outage(ledger, command)
        assert (await get_server_status(ledger.ledger_database)).is_read_only
    finally:
        await set_read_only(database_url, is_read_only=False)
    assert (await ledger.submit(command)).replayed is False
    assert (await ledger.submit(command)).replayed is True
    assert await ledger.get_balance(int(command.payee.key)) == 1_00


async def test_retry_after_a_lost_commit_response_returns_the_result(
    database_url: str, database: Database
) -> None:
    dropped: list[bytes] = []

    async def drop_first_commit_response(response: bytes) -> bool:
        if dropped or b"COMMIT\x00" not in response:
            return False
        dropped.append(response)
        return True

    async with run_proxy(database_url, hook=drop_first_commit_response) as port:
        ledger = await LedgerDriver.open(build_tcp_url(database_url, "127.0.0.1", port), database)
        command = await build_transfer(ledger)
        await submit_to_outage(ledger, command)
        assert dropped
        outcome = await ledger.submit(command)
        assert (outcome.code, outcome.replayed) == (None, True)
        assert await ledger.get_balance(int(command.payee.key)) == 1_00
        await ledger.close()
    await require_balanced_books(database)


async def submit_or_none(ledger: LedgerDriver, command: Command) -> Outcome | None:
    try:
        return await ledger.submit(command)
    except ApiError:
        return None


async def test_migration_waiting_for_an_open_read_does_not_stop_payments(
    ledger: LedgerDriver,
    database_url: str,
    other_session: asyncpg.Connection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(migrate_module, "MIN_PAUSE_SECONDS", 0.05)
    folder = tmp_path / "migrations"
    shutil.copytree(migration_plan.MIGRATIONS_DIR, folder)
    (folder / _MIGRATION).write_text("ALTER TABLE transactions ADD COLUMN added int;")
    lines: list[str] = []
    commands = [await build_transfer(ledger, f"command {number}") for number in range(3)]
    async with other_session.transaction():
        await other_session.fetch("SELECT count(*) FROM transactions")
        migration = asyncio.create_task(migrate(database_url, folder, lines.append))
        for number, command in enumerate(commands):
            while len(lines) <= number:
                assert not migration.done()
                await asyncio.sleep(0.01)
            assert (await ledger.submit(command)).code is None
    assert await migration == [_MIGRATION]
    pid = other_session.get_server_pid()
    expected = f"{_MIGRATION} waits for a lock held by session {pid} (analyst, transaction open"
    assert expected in lines[0]


async def test_migration_that_never_gets_its_lock_fails_and_names_the_blocker(
    database_url: str,
    other_session: asyncpg.Connection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(migrate_module, "LOCK_DEADLINE_SECONDS", 0.5)
    monkeypatch.setattr(migrate_module, "MIN_PAUSE_SECONDS", 0.05)
    folder = tmp_path / "migrations"
    shutil.copytree(migration_plan.MIGRATIONS_DIR, folder)
    (folder / _MIGRATION).write_text("ALTER TABLE transactions ADD COLUMN added int;")
    async with other_session.transaction():
        await other_session.fetch("SELECT count(*) FROM transactions")
        with pytest.raises(migrate_module.StoreError) as raised:
            await migrate(database_url, folder)
    pid = other_session.get_server_pid()
    assert f"{_MIGRATION} cannot be applied: session {pid} (analyst" in str(raised.value)
