"""How a node's processes divide the database server's connections."""

from typing import Final, NamedTuple

import asyncpg

from tapgate.runtime.store.failures import DATABASE_ERRORS
from tapgate.runtime.store.migrate import open_checked_connection

#: One connection for the batch, one for health checks.
LEDGER_CONNECTIONS: Final = 2
_LISTENER_CONNECTIONS: Final = 1
#: Ledger and audit log verification, which open connections while they run.
_JOB_CONNECTIONS: Final = 2
_FIXED_CONNECTIONS: Final = LEDGER_CONNECTIONS + _LISTENER_CONNECTIONS + _JOB_CONNECTIONS
#: A report worker's pool, and all its connections.
REPORT_POOL_CONNECTIONS: Final = 6
REPORT_CONNECTIONS: Final = REPORT_POOL_CONNECTIONS + _JOB_CONNECTIONS
#: Max. share of a process's connections for its queue workers.
_QUEUE_PART: Final = 5
_MAX_QUEUE_CONNECTIONS: Final = 4
#: Kept free for commands such as `tapgate backup`, and for the operator.
SPARE_CONNECTIONS: Final = 5

_SELECT_CAPACITY: Final = """
    SELECT current_setting('max_connections')::int
             - current_setting('superuser_reserved_connections')::int
             - current_setting('reserved_connections')::int AS usable,
           (SELECT count(*)::int FROM pg_stat_activity
            WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()) AS used"""


class ConnectionShares(NamedTuple):
    requests: int
    queue: int


def divide_connections(connections: int) -> ConnectionShares:
    """Return pool sizes for a gateway process that may open `connections` connections."""
    queue = min(_MAX_QUEUE_CONNECTIONS, connections // _QUEUE_PART)
    return ConnectionShares(connections - _FIXED_CONNECTIONS - queue, queue)


def get_messenger_connections(connections: int) -> int:
    """Return the pool size for a messenger process, which has no ledger and no listener."""
    return connections // 2


async def list_capacity_warnings(url: str, needed: int) -> list[str]:
    """Return a warning if the server does not have `needed` connections for this node.

    Only a warning: connections open on demand, and nodes that are being replaced overlap.
    """
    connection = await open_checked_connection(url)
    try:
        capacity = await connection.fetchrow(_SELECT_CAPACITY)
    except DATABASE_ERRORS:
        return []
    finally:
        connection.terminate()
    return _build_warnings(capacity, needed)


def _build_warnings(capacity: asyncpg.Record, needed: int) -> list[str]:
    usable, used = capacity["usable"], capacity["used"]
    if needed + used + SPARE_CONNECTIONS <= usable:
        return []
    return [
        f"Warning: this node may open {needed} database connections, but the server allows"
        f" {usable}, of which {used} are in use and {SPARE_CONNECTIONS} should stay free for"
        " commands. Raise max_connections, or lower TAPGATE_DATABASE_CONNECTIONS or the number of"
        " workers."
    ]
