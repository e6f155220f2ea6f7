"""Statements that are sent together with the next statement, without a round trip of their own.

asyncpg waits for the response to a statement before it sends the next one. PostgreSQL does not
require this. The messages here are written to asyncpg's transport without a Sync message, so
PostgreSQL executes them when it receives the next statement. asyncpg discards their responses,
which precede those of the next statement. After an error, PostgreSQL skips all messages up to the
next Sync, and asyncpg raises the error as one of the next statement.

This depends on internals of asyncpg; `tests/runtime/store/test_pipeline.py` checks them.
"""

import struct
from typing import Any, Final

import asyncpg
from asyncpg.transaction import Transaction, TransactionState


def _build_message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def _build_statement(sql: str) -> bytes:
    """Return Parse, Bind and Execute of an unnamed statement without parameters."""
    return (
        _build_message(b"P", b"\0" + sql.encode() + b"\0\0\0")
        + _build_message(b"B", b"\0\0" + b"\0\0" * 3)
        + _build_message(b"E", b"\0" + b"\0\0\0\0")
    )


_BEGIN: Final = _build_statement("BEGIN")
_BEGIN_SNAPSHOT: Final = _build_statement("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")


def begin(connection: asyncpg.Connection) -> Transaction:
    """Start a database transaction together with the next statement.

    The returned transaction is in the state in which `Transaction.start` would leave it. The next
    statement must not be a cursor, which asyncpg permits only after BEGIN was confirmed.
    """
    return _begin(connection, _BEGIN)


def begin_snapshot(connection: asyncpg.Connection) -> Transaction:
    """Start a read-only database transaction whose statements all read the same snapshot.

    The rest is as for `begin`.
    """
    return _begin(connection, _BEGIN_SNAPSHOT)


def send_ahead(connection: asyncpg.Connection, sql: str) -> None:
    """Send a statement without parameters together with the next one, in a transaction."""
    internals: Any = connection
    internals._transport.write(_build_statement(sql))


def _begin(connection: asyncpg.Connection, message: bytes) -> Transaction:
    transaction: Any = connection.transaction()
    internals: Any = connection
    internals._transport.write(message)
    internals._top_xact = transaction
    transaction._state = TransactionState.STARTED
    return transaction
