"""Statements that are sent together with the next statement, without a round trip of their own.

asyncpg waits for the response to a statement before it sends the next one. PostgreSQL does not
require this. The messages here are written to asyncpg's transport without a Sync message, so
PostgreSQL executes them when it receives the next statement. asyncpg discards their responses,
which precede those of the next statement. After an error, PostgreSQL skips all messages up to the
next Sync, and asyncpg raises the error as one of the next statement.

This depends on internals of asyncpg; `tests/store/test_pipeline.py` checks them.
"""

import struct
from typing import Any, Final

import asyncpg
from asyncpg.transaction import Transaction, TransactionState


def _build_message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


#: Parse, Bind and Execute of an unnamed statement without parameters.
_BEGIN: Final = (
    _build_message(b"P", b"\0BEGIN\0\0\0")
    + _build_message(b"B", b"\0\0" + b"\0\0" * 3)
    + _build_message(b"E", b"\0" + b"\0\0\0\0")
)


def begin(connection: asyncpg.Connection) -> Transaction:
    """Start a database transaction together with the next statement.

    The returned transaction is in the state in which `Transaction.start` would leave it. The next
    statement must not be a cursor, which asyncpg permits only after BEGIN was confirmed.
    """
    transaction: Any = connection.transaction()
    internals: Any = connection
    internals._transport.write(_BEGIN)
    internals._top_xact = transaction
    transaction._state = TransactionState.STARTED
    return transaction
