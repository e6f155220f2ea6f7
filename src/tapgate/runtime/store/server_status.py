"""PostgreSQL server state: writability, clock and replication."""

import re
import time
from collections import deque
from collections.abc import Callable

import asyncpg
import msgspec

from tapgate.runtime.store.database import Database
from tapgate_client.schemas.health import Replication, ReplicationMode

#: Commits wait for a standby only with these values of `synchronous_commit`.
_SYNCHRONOUS_COMMITS = frozenset({"on", "remote_write", "remote_apply"})
#: Number of standbys in `synchronous_standby_names`, such as `ANY 2 (a, b, c)`.
_STANDBY_COUNT_PATTERN = re.compile(r"\s*(?:(?:FIRST|ANY)\s+)?(\d+)\s*\(", re.IGNORECASE)

#: A standby that has not confirmed what the server had written this long ago is silent. It stays
#: connected until `wal_sender_timeout`, a minute by default.
SILENT_AFTER_SECONDS = 1.0

#: A session that holds a snapshot for longer is named in `/health`.
LONG_SNAPSHOT_SECONDS = 60.0

#: A user without `pg_monitor` sees that a standby is connected, but not its state.
_STATUS_SQL = """
    SELECT extract(epoch FROM clock_timestamp())::float8 AS now,
           pg_is_in_recovery() OR current_setting('transaction_read_only')::bool AS is_read_only,
           current_setting('synchronous_commit') AS synchronous_commit,
           current_setting('synchronous_standby_names') AS standby_names,
           CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_flush_lsn()::text END AS lsn,
           (SELECT array_agg(CASE WHEN sync_state IS NULL THEN 'unknown'
                                  WHEN state <> 'streaming' THEN 'async'
                                  WHEN CASE current_setting('synchronous_commit')
                                         WHEN 'remote_write' THEN write_lsn
                                         WHEN 'remote_apply' THEN replay_lsn
                                         ELSE flush_lsn END < $1::text::pg_lsn THEN 'silent'
                                  ELSE sync_state END)
            FROM pg_stat_replication) AS standbys,
           snapshot.*
    FROM (VALUES (1)) AS one_row LEFT JOIN LATERAL (
        SELECT pid, application_name, usename,
               extract(epoch FROM clock_timestamp() - xact_start)::float8 AS snapshot_seconds
        FROM pg_stat_activity
        WHERE backend_xmin IS NOT NULL AND datname = current_database()
          AND backend_type = 'client backend' AND pid <> pg_backend_pid()
          AND xact_start < clock_timestamp() - make_interval(secs => $2)
        ORDER BY xact_start LIMIT 1) AS snapshot ON true"""


class LongSnapshot(msgspec.Struct, frozen=True):
    """Session whose snapshot prevents that old row versions are removed, for over a minute."""

    pid: int
    application: str
    user: str
    seconds: float

    def __str__(self) -> str:
        name = f"{self.application}, " if self.application else ""
        return f"session {self.pid} ({name}user {self.user})"


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True):
    is_read_only: bool
    #: Seconds by which this machine's clock is ahead of the server's.
    clock_offset: float
    replication: Replication
    #: What the server has written to disk; None on a standby.
    lsn: str | None = None
    #: The oldest of the long snapshots. Without `pg_monitor`, other users' are not visible.
    long_snapshot: LongSnapshot | None = None


class ServerProbe:
    """Reads a server's state repeatedly, and notices standbys that confirm no more commits."""

    def __init__(self, database: Database) -> None:
        self._database = database
        #: Times and positions of the latest checks.
        self._positions: deque[tuple[float, str]] = deque(maxlen=16)
        self._expected: str | None = None

    async def __call__(self) -> ServerStatus:
        now = time.monotonic()
        while self._positions and now - self._positions[0][0] > SILENT_AFTER_SECONDS:
            self._expected = self._positions.popleft()[1]
        status = await get_server_status(self._database, confirmed_lsn=self._expected)
        if status.lsn is None:  # a standby that is promoted may begin a history of its own
            self._positions.clear()
            self._expected = None
        else:
            self._positions.append((now, status.lsn))
        return status


async def get_server_status(
    database: Database,
    get_time: Callable[[], float] = time.time,
    *,
    confirmed_lsn: str | None = None,
) -> ServerStatus:
    """Read the server state with one statement.

    Standbys that have not confirmed `confirmed_lsn` do not count as synchronous. If the server is
    read-only, later statements use new connections.
    """
    before = get_time()
    row = await database.fetchrow(_STATUS_SQL, confirmed_lsn, LONG_SNAPSHOT_SECONDS)
    assert row is not None
    if row["is_read_only"]:
        database.retire_connections()
    return ServerStatus(
        is_read_only=row["is_read_only"],
        clock_offset=(before + get_time()) / 2 - row["now"],
        replication=_describe_replication(row),
        lsn=row["lsn"],
        long_snapshot=_get_snapshot(row),
    )


def _get_snapshot(row: asyncpg.Record) -> LongSnapshot | None:
    if row["pid"] is None:
        return None
    return LongSnapshot(
        row["pid"], row["application_name"], row["usename"], row["snapshot_seconds"]
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
