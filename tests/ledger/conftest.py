from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from builders.ledger import LedgerDriver, require_balanced_books
from tapgate.ledger.state import State
from tapgate.store.database import Database


@pytest.fixture
async def ledger(database_url: str, database: Database) -> AsyncIterator[LedgerDriver]:
    """Yield a ledger without account holders; its invariants are verified after the test."""
    ledger = await LedgerDriver.open(database_url, database)
    try:
        yield ledger
        await require_balanced_books(database)
    finally:
        await ledger.close()


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
    from tapgate.ledger import engine

    recorded: list[str] = []
    write = engine.write

    async def write_recorded(tx: Any, state: State, *arguments: Any) -> None:
        await write(RecordingConnection(tx, recorded), state, *arguments)

    monkeypatch.setattr(engine, "write", write_recorded)
    return recorded
