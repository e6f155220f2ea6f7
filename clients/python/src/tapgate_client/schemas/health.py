"""Health endpoint responses for both services."""

from enum import StrEnum
from typing import Annotated

import msgspec

from tapgate_client import VERSION
from tapgate_client.schemas.values import Example


class NotReadyReason(StrEnum):
    STARTING = "starting"
    DRAINING = "draining"
    DATABASE_UNAVAILABLE = "database_unavailable"
    DATABASE_READ_ONLY = "database_read_only"
    DATABASE_DISK_FULL = "database_disk_full"
    LEDGER_LOCKED = "ledger_locked"
    COMMITS_STALLED = "commits_stalled"
    DISK_FULL = "disk_full"
    CLOCK_OFFSET = "clock_offset"
    NO_SYNCHRONOUS_STANDBY = "no_synchronous_standby"


class ReplicationMode(StrEnum):
    #: A commit is confirmed by the required number of synchronous standbys.
    SYNCHRONOUS = "synchronous"
    #: Too few synchronous standbys confirm commits, so commits wait for them.
    WAITING = "waiting"
    #: Standbys are connected, but commits do not wait for them.
    ASYNCHRONOUS = "asynchronous"
    #: No standby is connected.
    NONE = "none"
    #: The database user may not read the state of replication.
    UNKNOWN = "unknown"


class Live(msgspec.Struct, kw_only=True):
    live: bool = True


class ReadinessProblem(msgspec.Struct, kw_only=True, frozen=True):
    """Why a node must not receive requests."""

    code: NotReadyReason
    message: str


class Readiness(msgspec.Struct, kw_only=True):
    """Whether a node can process requests. `reasons` is empty if it can."""

    ready: bool
    reasons: list[ReadinessProblem]


class Replication(msgspec.Struct, kw_only=True, frozen=True):
    """Database replication; the counts are null if unknown.

    `standbys` counts connected standbys. `synchronous_standbys` counts only those that have
    confirmed the commits of the last second: a standby can be connected and silent.
    """

    mode: ReplicationMode
    standbys: int | None = None
    synchronous_standbys: int | None = None


class HealthWarningCode(StrEnum):
    #: A database session holds a snapshot for over a minute, which makes payments slower.
    LONG_SNAPSHOT = "long_snapshot"
    #: Online nodes run different releases, as during an upgrade.
    MIXED_VERSIONS = "mixed_versions"


class HealthWarning(msgspec.Struct, kw_only=True, frozen=True):
    """Problem that does not make the node unhealthy."""

    code: HealthWarningCode
    message: str


class VersionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Release that a node runs."""

    service: Annotated[str, Example("tapgate")]
    version: Annotated[str, Example(VERSION)]
    #: Number of the newest migration that the release knows.
    newest_migration: Annotated[str, Example("0107")]


class WalletCore(msgspec.Struct):
    healthy: bool
    version: Annotated[str, Example(VERSION)]


class Health(msgspec.Struct):
    """Gateway health. Older gateways omit the fields after `wallet_core`."""

    service: Annotated[str, Example("tapgate")]
    version: Annotated[str, Example(VERSION)]
    healthy: bool
    wallet_core: WalletCore
    reasons: list[ReadinessProblem] = []
    replication: Replication | None = None
    warnings: list[HealthWarning] = []
