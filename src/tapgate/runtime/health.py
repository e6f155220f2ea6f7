"""Worker process health: the cached checks behind `/ready` and `/health`."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

import asyncpg
import msgspec

from tapgate.core.settings import Settings
from tapgate.runtime.cached_result import CachedResult
from tapgate.runtime.commit_monitor import CommitMonitor
from tapgate.runtime.node_files import get_shared_folder
from tapgate.runtime.store.server_status import ServerStatus
from tapgate_client.errors import ApiError, unavailable
from tapgate_client.schemas.health import (
    HealthWarning,
    HealthWarningCode,
    NotReadyReason,
    Readiness,
    ReadinessProblem,
    ReplicationMode,
)

#: A check result is reused for this long, regardless of the number of requests.
#: Half a second, because a balancer that asks every second must notice a fault within three.
MAX_AGE_SECONDS: Final = 0.5
PROBE_TIMEOUT_SECONDS: Final = 2.0
#: Enough for the node's files and some log lines.
MIN_FREE_BYTES: Final = 16 * 1024 * 1024

_MESSAGES: Final = {
    NotReadyReason.STARTING: "The process is starting.",
    NotReadyReason.DRAINING: "The process is shutting down.",
    NotReadyReason.DATABASE_UNAVAILABLE: "The database is unavailable.",
    NotReadyReason.DATABASE_READ_ONLY: "The database is read-only.",
    NotReadyReason.DATABASE_DISK_FULL: "The disk of the database server is full.",
    NotReadyReason.LEDGER_LOCKED: "A database session locks the ledger tables.",
    NotReadyReason.COMMITS_STALLED: "The database does not complete commits.",
    NotReadyReason.DISK_FULL: "The disk with the data folder is full.",
    NotReadyReason.CLOCK_OFFSET: "This node's clock is wrong.",
    NotReadyReason.NO_SYNCHRONOUS_STANDBY: "No synchronous standby confirms commits.",
}
#: Reasons that do not mean that something is wrong.
_LIFECYCLE_REASONS: Final = frozenset({NotReadyReason.STARTING, NotReadyReason.DRAINING})

Probe = Callable[[], Awaitable[ServerStatus]]


class HealthStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Check result. `server` is None if the database did not respond."""

    problems: tuple[NotReadyReason, ...]
    server: ServerStatus | None

    @property
    def is_healthy(self) -> bool:
        return not self.problems

    @property
    def can_write(self) -> bool:
        """Whether the ledger can commit transactions."""
        return not {
            NotReadyReason.DATABASE_UNAVAILABLE,
            NotReadyReason.DATABASE_READ_ONLY,
            NotReadyReason.DATABASE_DISK_FULL,
            NotReadyReason.LEDGER_LOCKED,
            NotReadyReason.COMMITS_STALLED,
            NotReadyReason.NO_SYNCHRONOUS_STANDBY,
        }.intersection(self.problems)


class HealthMonitor:
    """Checks the database, the disk and the clock at most twice per second.

    `probe` reads the database server state. `commits` tells whether payments are committed, in
    processes that commit them.
    """

    def __init__(
        self, settings: Settings, probe: Probe, commits: CommitMonitor | None = None
    ) -> None:
        #: The sandbox replaces it, to play a wrong clock.
        self.probe = probe
        self.commits = commits
        self.folder = get_shared_folder(settings.data_dir)
        self._max_clock_offset = settings.max_clock_offset
        self._requires_sync_replication = settings.require_sync_replication
        self.status = CachedResult(self._check, MAX_AGE_SECONDS)
        #: Offset between the database clock and the clock that most nodes agree on.
        self.reference_offset = 0.0
        #: Online nodes by the release that they run.
        self.nodes_by_version: Mapping[str, int] = {}
        #: Set by the server when it begins to shut down.
        self.is_draining = False

    @property
    def latest(self) -> HealthStatus | None:
        """The latest check result, or None before the first."""
        return self.status.latest

    async def get_status(self) -> HealthStatus:
        """Return the latest check result, or check again if it is too old."""
        return await self.status.get()

    async def get_readiness(self) -> Readiness:
        if self.is_draining:
            reasons: tuple[NotReadyReason, ...] = (NotReadyReason.DRAINING,)
        else:
            reasons = (await self.get_status()).problems
        return Readiness(ready=not reasons, reasons=describe_problems(reasons))

    async def list_warnings(self) -> list[HealthWarning]:
        """Return the problems that do not make the node unhealthy."""
        server = (await self.get_status()).server
        warnings = {}
        if server is not None and (snapshot := server.long_snapshot) is not None:
            warnings[HealthWarningCode.LONG_SNAPSHOT] = (
                f"The {snapshot} has held a snapshot for {snapshot.seconds:.0f} seconds."
            )
        if len(self.nodes_by_version) > 1:
            nodes = sorted(self.nodes_by_version.items())
            counts = ", ".join(f"{count} with {version}" for version, count in nodes)
            warnings[HealthWarningCode.MIXED_VERSIONS] = f"Nodes run different releases: {counts}."
        return [HealthWarning(code=code, message=text) for code, text in warnings.items()]

    async def require_sync_replication(self) -> None:
        """Raise 503 if commits must be replicated synchronously and are not."""
        if (
            self._requires_sync_replication
            and NotReadyReason.NO_SYNCHRONOUS_STANDBY in (await self.get_status()).problems
        ):
            raise unavailable(
                "No synchronous standby confirms commits. The transaction was not executed."
            )

    async def _check(self) -> HealthStatus:
        server: ServerStatus | None = None
        with contextlib.suppress(ApiError, TimeoutError, asyncpg.PostgresError):
            async with asyncio.timeout(PROBE_TIMEOUT_SECONDS):
                server = await self.probe()
        problems = self._list_problems(server)
        if server is not None and not server.is_read_only and self.commits is not None:
            problem = await self.commits.get_problem()
            if problem is not None and problem not in problems:
                problems.append(problem)
        return HealthStatus(problems=tuple(problems), server=server)

    def _list_problems(self, server: ServerStatus | None) -> list[NotReadyReason]:
        problems = []
        if server is None:
            problems.append(NotReadyReason.DATABASE_UNAVAILABLE)
        else:
            if server.is_read_only:
                problems.append(NotReadyReason.DATABASE_READ_ONLY)
            if abs(server.clock_offset - self.reference_offset) > self._max_clock_offset:
                problems.append(NotReadyReason.CLOCK_OFFSET)
            if (
                self._requires_sync_replication
                and server.replication.mode != ReplicationMode.SYNCHRONOUS
            ):
                problems.append(NotReadyReason.NO_SYNCHRONOUS_STANDBY)
        if _is_disk_full(self.folder):
            problems.append(NotReadyReason.DISK_FULL)
        return problems


def describe_problems(reasons: tuple[NotReadyReason, ...]) -> list[ReadinessProblem]:
    return [ReadinessProblem(code=reason, message=_MESSAGES[reason]) for reason in reasons]


def _is_disk_full(folder: Path) -> bool:
    try:
        status = os.statvfs(folder)
    except OSError:
        return True
    # Some file systems report no inode count.
    has_no_inodes = status.f_files > 0 and status.f_favail == 0
    return has_no_inodes or status.f_bavail * status.f_frsize < MIN_FREE_BYTES
