"""Registry of running nodes in the database, through which they compare settings and clocks."""

import contextlib
import socket
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NoReturn

import asyncpg
import msgspec
import structlog

from tapgate import VERSION
from tapgate.core.settings import Settings
from tapgate.core.settings.declaration import SettingsError
from tapgate.core.settings.fingerprint import (
    compute_fingerprint,
    find_common_values,
    is_critical,
    list_differences,
    list_secret_keys,
)
from tapgate.core.settings.nodes import MismatchAction
from tapgate.core.vault import Vault
from tapgate.runtime.background import run_periodically
from tapgate.runtime.health import HealthMonitor
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.migrate import NODES_LOCK_KEY
from tapgate.runtime.store.migration_plan import (
    get_newest_number,
    read_applied,
    require_usable_schema,
)
from tapgate_client.errors import ApiError
from tapgate_client.schemas.health import NotReadyReason
from tapgate_client.schemas.nodes import NodeRole, NodeStatus

_log = structlog.get_logger()

_HEARTBEAT_SECONDS: Final = 5.0
_OFFLINE_AFTER: Final = timedelta(seconds=30)
_REMOVED_AFTER: Final = timedelta(hours=1)
#: Only a node's first worker reports.
_MIN_HEARTBEAT_AGE: Final = timedelta(seconds=_HEARTBEAT_SECONDS - 1)

#: A heartbeat must not wait for a synchronous standby.
_COMMIT_LOCALLY_SQL = "SELECT set_config('synchronous_commit', 'off', true)"
_UPSERT_SQL = """
    INSERT INTO nodes AS node (id, role, host, port, version, settings, problems, clock_offset,
                               newest_migration, started_at, last_seen)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $10, clock_timestamp(), clock_timestamp())
    ON CONFLICT (id, role) DO UPDATE
    SET version = excluded.version, settings = excluded.settings, problems = excluded.problems,
        clock_offset = excluded.clock_offset, newest_migration = excluded.newest_migration,
        last_seen = excluded.last_seen
    WHERE node.last_seen < excluded.last_seen - $9::interval
       OR (node.problems, node.newest_migration)
          IS DISTINCT FROM (excluded.problems, excluded.newest_migration)"""
_DELETE_EXPIRED_SQL = "DELETE FROM nodes WHERE last_seen < clock_timestamp() - $1::interval"
_SELECT_SQL = """
    SELECT id, role, host, port, version, settings, problems, clock_offset, newest_migration,
           started_at, last_seen,
           last_seen > clock_timestamp() - $1::interval AS is_online
    FROM nodes ORDER BY started_at, id, role"""
_DELETE_SQL = "DELETE FROM nodes WHERE id = $1 AND role = $2"


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A registered node. `settings` are hashes; see `settings.fingerprint`."""

    id: str
    role: NodeRole
    host: str
    port: int
    version: str
    settings: dict[str, str]
    problems: list[NotReadyReason]
    clock_offset: float | None
    #: Number of the newest migration that its release knows; None if it does not report it.
    newest_migration: str | None
    started_at: datetime
    last_seen: datetime
    is_online: bool

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def status(self) -> NodeStatus:
        if not self.is_online:
            return NodeStatus.OFFLINE
        return NodeStatus.NOT_READY if self.problems else NodeStatus.READY


class NodeRegistry:
    """This node's entry in the registry, reported by each of its workers."""

    def __init__(
        self, settings: Settings, role: NodeRole, database: Database, health: HealthMonitor
    ) -> None:
        self._settings = settings
        self.role = role
        self._database = database
        self._health = health
        self._fingerprint = compute_fingerprint(settings, role)
        self._host = socket.gethostname()
        self._port = settings.port if role is NodeRole.GATEWAY else settings.messenger_port
        self._newest_migration = get_newest_number()
        self._reported_differences: list[str] = []
        #: Online nodes at the last heartbeat.
        self.online_nodes: list[Node] = []

    async def join(self) -> list[str]:
        """Register the node before its workers start; return warnings for the operator.

        Raise SettingsError if a critical setting differs on another online node, and StoreError if
        a contract migration that this node cannot run with was applied since its start. The lock
        serializes joins, so that the second of two nodes sees the first.
        """
        async with self._database.transaction() as tx:
            await tx.execute(_COMMIT_LOCALLY_SQL)
            await tx.execute("SELECT pg_advisory_xact_lock($1)", NODES_LOCK_KEY)
            require_usable_schema(await read_applied(tx), self._newest_migration)
            others = [
                node
                for node in await list_nodes(tx)
                if node.is_online and not self._is_predecessor(node)
            ]
            lines = [line for node in others for line in self._compare(node)]
            await self._upsert(tx, [], None)
        return lines

    @contextlib.asynccontextmanager
    async def remove_on_exit(self) -> AsyncIterator[None]:
        """Remove the node from the registry when its worker stops."""
        yield
        try:
            async with self._database.transaction() as tx:
                await tx.execute(_COMMIT_LOCALLY_SQL)
                await tx.execute(_DELETE_SQL, self._settings.node_id, self.role)
        except (ApiError, asyncpg.PostgresError) as error:
            _log.warning("nodes.not_removed", error=type(error).__name__)  # it expires

    async def run(self) -> NoReturn:
        """Report the node's state periodically, until canceled."""
        await run_periodically(self.report, every=_HEARTBEAT_SECONDS, name="node registry")

    async def report(self) -> None:
        """Update the node's entry, and compare settings and clocks with other nodes."""
        readiness = await self._health.get_readiness()
        server = (await self._health.get_status()).server
        offset = None if server is None else server.clock_offset
        async with self._database.transaction() as tx:
            await tx.execute(_COMMIT_LOCALLY_SQL)
            await self._upsert(tx, [problem.code for problem in readiness.reasons], offset)
            await tx.execute(_DELETE_EXPIRED_SQL, _REMOVED_AFTER)
            nodes = await list_nodes(tx)
        self.online_nodes = [node for node in nodes if node.is_online]
        self._health.reference_offset = compute_reference_offset(self.online_nodes)
        self._health.nodes_by_version = Counter(node.version for node in self.online_nodes)
        self._log_differences()

    def list_differences(self) -> list[str]:
        """Return the settings in which this node differs from most online nodes."""
        common = find_common_values(node.settings for node in self.online_nodes)
        return list_differences(self._fingerprint, common)

    async def _upsert(
        self, tx: asyncpg.Connection, problems: Sequence[str], offset: float | None
    ) -> None:
        await tx.execute(
            _UPSERT_SQL,
            self._settings.node_id,
            self.role,
            self._host,
            self._port,
            VERSION,
            self._fingerprint,
            problems,
            offset,
            _MIN_HEARTBEAT_AGE,
            self._newest_migration,
        )

    def _is_predecessor(self, node: Node) -> bool:
        """Return whether an entry is from an earlier run of this node that was killed."""
        return (node.host, node.port, node.role) == (self._host, self._port, self.role)

    def _compare(self, node: Node) -> list[str]:
        _require_common_keys(node, list_secret_keys(self._fingerprint))
        differences = list_differences(self._fingerprint, node.settings)
        critical = [name for name in differences if is_critical(name)]
        where = f"from the {node.role} {node.address}, which uses the same database"
        if critical and self._settings.settings_mismatch != MismatchAction.WARN:
            raise SettingsError(
                f"{' and '.join(critical)} must not differ {where}. To change settings node by"
                " node, set TAPGATE_SETTINGS_MISMATCH=warn"
            )
        if not differences:
            return []
        verb = "differs" if len(differences) == 1 else "differ"
        return [f"Warning: {', '.join(differences)} {verb} {where}."]

    def _log_differences(self) -> None:
        differences = self.list_differences()
        if differences != self._reported_differences:
            self._reported_differences = differences
            _log.warning("nodes.settings_differ", settings=differences)


async def require_common_keys(database: Database, vault: Vault) -> None:
    """Raise SettingsError if a process with this vault and an online node cannot share data."""
    for node in await list_nodes(database):
        if node.is_online:
            _require_common_keys(node, [*vault.key_names])


def _require_common_keys(node: Node, own: Sequence[str]) -> None:
    others = list_secret_keys(node.settings)
    where = f"the {node.role} {node.address}"
    if others and own[0] not in others:
        raise SettingsError(
            f"{where} lacks the first key of TAPGATE_SECRET_KEY ({own[0]}). Add a new key as the"
            " second one on all nodes before you make it the first one"
        )
    if others and others[0] not in own:
        raise SettingsError(f"TAPGATE_SECRET_KEY lacks the first key of {where} ({others[0]})")


async def list_nodes(connection: asyncpg.Connection | Database) -> list[Node]:
    """Return all registered nodes, the longest-running first."""
    rows: list[Any] = await connection.fetch(_SELECT_SQL, _OFFLINE_AFTER)
    return [Node(**dict(row)) for row in rows]


def compute_reference_offset(nodes: Sequence[Node]) -> float:
    """Return the median clock offset over all hosts and the database.

    If most hosts agree with each other and not with the database, its clock is the wrong one, and
    no node must stop for that reason. If two clocks disagree, the database's is right.
    """
    by_host = {node.host: node.clock_offset for node in nodes if node.clock_offset is not None}
    offsets = sorted([0.0, *by_host.values()])
    return min(offsets[(len(offsets) - 1) // 2], offsets[len(offsets) // 2], key=abs)
