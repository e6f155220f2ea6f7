"""Server-side limits for each kind of session.

PostgreSQL enforces them, so a statement ends on the server even if its client is gone: a lock held
for a long time cannot use up the server's connections with sessions that wait for it.

Request sessions wait for at most half the time that a request may take. The server ends a
statement shortly before the client does, so the connection remains usable.
"""

from typing import NamedTuple

#: Fractions of a request's time after which the server stops waiting for a lock, and ends a
#: statement.
_LOCK_FRACTION = 1 / 2
_STATEMENT_FRACTION = 7 / 8


class SessionLimits(NamedTuple):
    """Limits in seconds; 0 means no limit."""

    lock: float
    statement: float
    idle_in_transaction: float
    #: How often a running statement checks that its client is still connected.
    connection_check: float = 1.0

    def to_settings(self) -> dict[str, str]:
        return {
            "lock_timeout": format_timeout(self.lock),
            "statement_timeout": format_timeout(self.statement),
            "idle_in_transaction_session_timeout": format_timeout(self.idle_in_transaction),
            "client_connection_check_interval": format_timeout(self.connection_check),
        }


def format_timeout(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"


def build_request_limits(budget_seconds: float) -> SessionLimits:
    """Return session limits for requests that may take `budget_seconds`."""
    return SessionLimits(
        budget_seconds * _LOCK_FRACTION, budget_seconds * _STATEMENT_FRACTION, 30.0
    )


def build_payment_limits(budget_seconds: float) -> SessionLimits:
    """Return ledger session limits.

    A batch never pauses between statements. A suspended process must not hold its row locks for
    longer than other payments wait.
    """
    return build_request_limits(budget_seconds)._replace(idle_in_transaction=budget_seconds + 1)


#: Verification and other jobs on a dedicated connection.
LONG_JOB_LIMITS = SessionLimits(lock=30.0, statement=3600.0, idle_in_transaction=300.0)
#: Backup and restore copy whole tables, and may write to a slow file.
COPY_LIMITS = SessionLimits(
    lock=60.0, statement=0.0, idle_in_transaction=3600.0, connection_check=10.0
)
#: All other sessions queue behind a migration that waits for a table lock.
MIGRATION_LIMITS = SessionLimits(lock=0.3, statement=0.0, idle_in_transaction=60.0)
LISTENER_LIMITS = SessionLimits(lock=2.0, statement=2.0, idle_in_transaction=30.0)
