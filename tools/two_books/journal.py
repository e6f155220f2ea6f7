"""Durable transfer journal, in SQLite."""

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from tools.two_books.protocol import FINAL_STATES, State, Transfer

_CREATE = """
    CREATE TABLE IF NOT EXISTS transfers (
        id TEXT PRIMARY KEY, source TEXT NOT NULL, target TEXT NOT NULL, payer TEXT NOT NULL,
        recipient TEXT NOT NULL, amount TEXT NOT NULL, state TEXT NOT NULL,
        attempt INTEGER NOT NULL, code TEXT
    )"""


class Journal:
    """Every write is flushed to disk before it returns."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=30.0)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(_CREATE)

    def add(self, transfers: Iterable[Transfer]) -> None:
        self._connection.execute("BEGIN")
        self._connection.executemany(
            "INSERT INTO transfers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", transfers
        )
        self._connection.execute("COMMIT")

    def record(self, before: Transfer, after: Transfer) -> None:
        """Record a step. It changes nothing if another coordinator has recorded it already."""
        self._connection.execute(
            """UPDATE transfers SET state = ?, attempt = ?, code = ?
               WHERE id = ? AND state = ? AND attempt = ?""",
            (after.state, after.attempt, after.code, before.id, before.state, before.attempt),
        )

    def list_all(self) -> list[Transfer]:
        rows = self._connection.execute("SELECT * FROM transfers ORDER BY id").fetchall()
        return [Transfer(*row)._replace(state=State(row[6])) for row in rows]

    def list_open(self) -> list[Transfer]:
        return [transfer for transfer in self.list_all() if transfer.state not in FINAL_STATES]

    def close(self) -> None:
        self._connection.close()
