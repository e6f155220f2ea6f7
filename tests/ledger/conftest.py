from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import pytest

from builders.archive import History
from builders.ledger import LedgerDriver, require_balanced_books
from databases import ScratchDatabases, build_database_url
from tapgate.ledger.decisions.state import State
from tapgate.ledger.verification import verify
from tapgate.runtime.store.database import Database


@pytest.fixture
async def ledger(database_url: str, database: Database) -> AsyncIterator[LedgerDriver]:
    """Yield a ledger without account holders; its invariants are verified after the test."""
    ledger = await LedgerDriver.open(database_url, database)
    try:
        yield ledger
        await require_balanced_books(database)
    finally:
        await ledger.close()


class HistoryTemplate(NamedTuple):
    """A database with payments of several months, from which each test gets a copy."""

    name: str
    history: History


@pytest.fixture(scope="session")
async def history_template(
    postgres: str, scratch_databases: ScratchDatabases
) -> AsyncIterator[HistoryTemplate]:
    name = await scratch_databases.acquire()
    url = build_database_url(name, postgres)
    database = await Database.connect(url)
    history = await History.create(url, database)
    await database.close()
    yield HistoryTemplate(name, history)
    await scratch_databases.release(name)


@pytest.fixture
async def history(
    history_template: HistoryTemplate,
    postgres: str,
    scratch_databases: ScratchDatabases,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[History]:
    """Yield the history; its ledger is verified after the test."""
    monkeypatch.setattr(verify, "RANGE_SIZE", 5)
    name = await scratch_databases.copy(history_template.name)
    url = build_database_url(name, postgres)
    database = await Database.connect(url)
    history = await history_template.history.open_copy(url, database, tmp_path / "archive")
    try:
        yield history
        assert await history.verify(full=True) == {}
        await require_balanced_books(database)
    finally:
        await history.ledger.close()
        await database.close()
        await scratch_databases.release(name)


class RecordingConnection:
    """Connection wrapper that records the statements executed on it."""

    def __init__(self, connection: asyncpg.Connection, statements: list[str]) -> None:
        self._connection = connection
        self._statements = statements

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._connection, name)

        async def record_statement(sql_or_table: str, *values: object, **rows: object) -> Any:
            self._statements.append(sql_or_table)
            return await method(sql_or_table, *values, **rows)

        return record_statement


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that receives every statement with which batches are written."""
    from tapgate.ledger.engine import group_commit

    recorded: list[str] = []
    write = group_commit.write

    async def write_recorded(tx: Any, state: State, *arguments: Any, commits: bool) -> None:
        await write(RecordingConnection(tx, recorded), state, *arguments, commits=False)

    monkeypatch.setattr(group_commit, "write", write_recorded)
    return recorded
