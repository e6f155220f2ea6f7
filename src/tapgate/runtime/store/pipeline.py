"""Statements that are sent together with another statement, without an extra round trip.

asyncpg waits for the response to a statement before it sends the next one. PostgreSQL does not
require this. Messages that precede a statement are kept until asyncpg writes the statement, so that
one system call sends everything, and COMMIT is inserted between statement messages and their Sync.
asyncpg discards the additional responses, which contain no rows. After an error, PostgreSQL skips
all messages up to the next Sync, and asyncpg raises the error as its own statement's: COMMIT is
executed only if everything before it succeeded.

This depends on asyncpg internals; `tests/runtime/store/test_pipeline.py` checks them.
"""

import struct
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import asyncpg
import asyncpg.protocol
from asyncpg.transaction import Transaction, TransactionState

_TEXT_TYPE_ID: Final = 25


def _build_message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def _build_bind(statement: str, parameters: Sequence[bytes] = ()) -> bytes:
    """Return a Bind message with parameters in binary format."""
    formats = struct.pack("!hhh", 1, 1, len(parameters))
    values = b"".join(struct.pack("!i", len(value)) + value for value in parameters)
    return _build_message(b"B", b"\0" + statement.encode() + b"\0" + formats + values + b"\0\0")


def _build_statement(sql: str) -> bytes:
    """Return Parse, Bind and Execute messages for an unnamed statement without parameters."""
    parse = _build_message(b"P", b"\0" + sql.encode() + b"\0\0\0")
    return parse + _build_bind("") + _EXECUTE


_EXECUTE: Final = _build_message(b"E", b"\0" + b"\0\0\0\0")
_SYNC: Final = _build_message(b"S", b"")
_BEGIN: Final = _build_statement("BEGIN")
_COMMIT: Final = _build_statement("COMMIT")
_BEGIN_SNAPSHOT: Final = _build_statement("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")


class _Transport:
    """Transport wrapper that adds messages to those that asyncpg writes next.

    `ahead` precedes them; `inserted` precedes their Sync.
    """

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._write = transport.write
        self.ahead = self.inserted = b""

    def write(self, data: bytes | memoryview) -> None:
        if self.ahead:
            data, self.ahead = self.ahead + data, b""
        if self.inserted and data[-len(_SYNC) :] == _SYNC:
            self._write(b"".join((data[: -len(_SYNC)], self.inserted, _SYNC)))
            self.inserted = b""
        else:
            self._write(data)

    def writelines(self, chunks: Iterable[bytes | memoryview]) -> None:
        self.write(b"".join(chunks))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class PipelineProtocol(asyncpg.protocol.Protocol):  # type: ignore[misc]
    """asyncpg's protocol with a transport that sends several statements at once."""

    def connection_made(self, transport: Any) -> None:
        self.pipeline_transport = _Transport(transport)
        super().connection_made(self.pipeline_transport)


def _get_transport(connection: asyncpg.Connection) -> _Transport:
    internals: Any = connection
    transport: _Transport = internals._protocol.pipeline_transport
    return transport


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
    _get_transport(connection).ahead += _build_statement(sql)


async def execute_ahead(
    connection: asyncpg.Connection, sql: str, *text_arrays: Collection[str]
) -> None:
    """Send a statement with text arrays as its parameters together with the next statement.

    It must not return rows: asyncpg would attribute them to the next statement.
    """
    internals: Any = connection
    statement = await internals._get_statement(sql, internals._protocol._get_timeout(None))
    bind = _build_bind(statement.name, [_encode_texts(texts) for texts in text_arrays])
    _get_transport(connection).ahead += bind + _EXECUTE


def _encode_texts(texts: Collection[str]) -> bytes:
    """Encode an array in PostgreSQL's binary format."""
    items = [text.encode() for text in texts]
    dimension = struct.pack("!ii", len(items), 1) if items else b""
    return b"".join(
        (
            struct.pack("!iiI", bool(items), 0, _TEXT_TYPE_ID),
            dimension,
            *(struct.pack("!i", len(item)) + item for item in items),
        )
    )


def _begin(connection: asyncpg.Connection, message: bytes) -> Transaction:
    transaction: Any = connection.transaction()
    internals: Any = connection
    _get_transport(connection).ahead += message
    internals._top_xact = transaction
    transaction._state = TransactionState.STARTED
    return transaction


async def fetch_and_commit(
    connection: asyncpg.Connection, sql: str, *arguments: object
) -> list[asyncpg.Record]:
    """Run the last statement in a database transaction, and commit in the same round trip.

    If the connection is lost, the outcome is unknown, as it is during COMMIT. The same applies if
    asyncpg cannot decode the rows: the caller must not run the statement again, because COMMIT was
    executed.
    """
    internals: Any = connection
    protocol = internals._protocol
    # asyncpg may send other statements to prepare this one.
    await internals._get_statement(sql, protocol._get_timeout(None))
    transport = _get_transport(connection)
    transport.inserted = _COMMIT
    try:
        rows: list[asyncpg.Record] = await connection.fetch(sql, *arguments)
    except asyncpg.PostgresError:
        raise
    except Exception as error:
        if not transport.inserted and not connection.is_in_transaction():
            raise ConnectionError("the commit outcome is unknown") from error
        raise
    finally:
        transport.inserted = b""
    if not connection.is_in_transaction():
        internals._top_xact._state = TransactionState.COMMITTED
        internals._top_xact = None
    return rows


def is_open(transaction: Transaction) -> bool:
    """Return whether a database transaction is neither committed nor rolled back."""
    internals: Any = transaction
    return bool(internals._state is TransactionState.STARTED)
