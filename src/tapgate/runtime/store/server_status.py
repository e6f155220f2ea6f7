"""PostgreSQL server state: writability, clock and replication."""

import re
import time
from collections.abc import Callable

import asyncpg
import msgspec

from tapgate.runtime.store.database import Database
from tapgate_client.schemas.health import Replication, ReplicationMode

#: Commits wait for a standby only with these values of `synchronous_commit`.
_SYNCHRONOUS_COMMITS = frozenset({"on", "remote_write", "remote_apply"})
#: Number of standbys in `synchronous_standby_names`, such as `ANY 2 (a, b, c)`.
_STANDBY_COUNT_PATTERN = re.compile(r"\s*(?:(?:FIRST|ANY)\s+)?(\d+)\s*\(", re.IGNORECASE)

#: A user without `pg_monitor` sees that a standby is connected, but not its state.
_STATUS_SQL = """
    SELECT extract(epoch FROM clock_timestamp())::float8 AS now,
           pg_is_in_recovery() OR current_setting('transaction_read_only')::bool AS is_read_only,
           current_setting('synchronous_commit') AS synchronous_commit,
           current_setting('synchronous_standby_names') AS standby_names,
           (SELECT array_agg(CASE WHEN sync_state IS NULL THEN 'unknown'
                                  WHEN state = 'streaming' THEN sync_state
                                  ELSE 'async' END)
            FROM pg_stat_replication) AS standbys"""


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True):
    is_read_only: bool
    #: Seconds by which this machine's clock is ahead of the server's.
    clock_offset: float
    replication: Replication


async def get_server_status(
    database: Database, get_time: Callable[[], float] = time.time
) -> ServerStatus:
    """Read the server state with one statement.

    If the server is read-only, later statements use new connections.
    """
    before = get_time()
    row = await database.fetchrow(_STATUS_SQL)
    assert row is not None
    if row["is_read_only"]:
        database.retire_connections()
    return ServerStatus(
        is_read_only=row["is_read_only"],
        clock_offset=(before + get_time()) / 2 - row["now"],
        replication=_describe_replication(row),
    )


def _describe_replication(row: asyncpg.Record) -> Replication:
    states: list[str] = row["standbys"] or []
    names: str = row["standby_names"]
    is_synchronous = bool(names.strip()) and row["synchronous_commit"] in _SYNCHRONOUS_COMMITS
    if "unknown" in states:
        return Replication(mode=ReplicationMode.UNKNOWN, standbys=len(states))
    synchronous = sum(state in ("sync", "quorum") for state in states)
    if is_synchronous:
        match = _STANDBY_COUNT_PATTERN.match(names)
        required = int(match[1]) if match else 1
        has_enough = synchronous >= required
        mode = ReplicationMode.SYNCHRONOUS if has_enough else ReplicationMode.WAITING
    else:
        synchronous = 0
        mode = ReplicationMode.ASYNCHRONOUS if states else ReplicationMode.NONE
    return Replication(mode=mode, standbys=len(states), synchronous_standbys=synchronous)
