"""Classifies database errors: which are outages, and whether the connection stays usable.

Errors that are not listed here, such as a violated constraint, are left to the caller.
"""

from enum import Enum
from typing import Any

import asyncpg

from tapgate_client.errors import ApiError, unavailable


class Failure(Enum):
    """Failure that is reported as 503."""

    #: The connection cannot be used again.
    LOST = "The database is unavailable. Try again shortly."
    #: The server accepts no writes: it was demoted, or an operator made it read-only.
    READ_ONLY = "The database is read-only. Try again shortly."
    #: The server ended the statement. The connection can be used again.
    BUSY = "The database is busy. Try again shortly."

    def build_error(self) -> ApiError:
        return unavailable(self.value)


#: Database and network errors that opening, using, or closing a connection can raise.
DATABASE_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
)

_BUSY_ERRORS = (
    asyncpg.LockNotAvailableError,  # lock_timeout
    asyncpg.QueryCanceledError,  # statement_timeout, or canceled by an operator
)
_LOSS_ERRORS = (
    asyncpg.PostgresConnectionError,
    asyncpg.InternalClientError,  # connection used after the server began to close it
    asyncpg.OperatorInterventionError,  # shutting down, starting up
    asyncpg.InsufficientResourcesError,  # connections, memory, or disk exhausted
    asyncpg.PostgresSystemError,  # the server cannot read or write its files
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.TransactionTimeoutError,
    ConnectionError,
    TimeoutError,
)
#: Errors with which a standby cancels a query that conflicts with replication.
_CONFLICT_ERRORS = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
_CONFLICT_TEXT = "conflict with recovery"


def classify_failure(error: BaseException, connection: Any) -> Failure | None:
    """Return the kind of failure, or None if the error is not an outage."""
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        return Failure.READ_ONLY
    if isinstance(error, _BUSY_ERRORS):
        return Failure.BUSY
    if isinstance(error, asyncpg.InterfaceError):
        # asyncpg also reports incorrect use this way, which must not look like an outage.
        return Failure.LOST if connection.is_closed() else None
    if isinstance(error, _CONFLICT_ERRORS) and _CONFLICT_TEXT in str(error):
        return Failure.BUSY
    return Failure.LOST if isinstance(error, _LOSS_ERRORS) else None


def summarize_error(error: BaseException) -> str:
    """Return the error's first line, for an operator."""
    return str(error).partition("\n")[0] or type(error).__name__
