"""Node list response."""

from enum import StrEnum
from typing import Annotated

import msgspec

from tapgate_client import VERSION
from tapgate_client.schemas.health import NotReadyReason, Replication
from tapgate_client.schemas.values import Example, Id, Name, Time


class NodeRole(StrEnum):
    GATEWAY = "gateway"
    MESSENGER = "messenger"


class NodeStatus(StrEnum):
    READY = "ready"
    NOT_READY = "not_ready"
    #: The node has not reported for 30 seconds.
    OFFLINE = "offline"


class NodeRecord(msgspec.Struct, kw_only=True):
    """A running node, as last reported by the node itself.

    `differences` names the settings whose values differ from the values on most nodes.
    """

    id: Id
    role: NodeRole
    host: str
    port: int
    version: Annotated[str, Example(VERSION)]
    status: NodeStatus
    reasons: list[NotReadyReason]
    differences: list[str]
    #: Seconds by which the node's clock is ahead of the database's; null if unknown.
    clock_offset: float | None
    started_at: Time
    last_seen: str
    #: Number of the newest migration that the node's release knows; null if it does not report it.
    newest_migration: str | None = None


class SchemaRecord(msgspec.Struct, kw_only=True):
    """Database schema. `pending` names the migrations that are not applied yet."""

    #: Number of the newest migration that is applied.
    newest_migration: str
    #: Number of the newest migration that a node must know; null if every node can use the schema.
    required_migration: str | None
    pending: list[str]


class PostgresRecord(msgspec.Struct, kw_only=True):
    """PostgreSQL server that the nodes use.

    `newest_version` is the newest minor release that was known when the gateway was built; null if
    the gateway does not know the major release.
    """

    version: Annotated[str, Example("18.4")]
    newest_version: str | None
    is_outdated: bool


class NodeList(msgspec.Struct, kw_only=True):
    data: list[NodeRecord]
    #: Database replication; null while the database is unavailable.
    replication: Replication | None
    #: Older gateways omit it.
    database_schema: SchemaRecord | None = None
    #: Older gateways omit it.
    postgres: PostgresRecord | None = None


class SettingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Node setting. `value` is null if it is hidden, because it is secret, or not set."""

    name: Name
    value: str | None
    hidden: bool
    is_set: bool
    #: Whether the variable is not set, so that the value is the default.
    is_default: bool


class EffectiveSettings(msgspec.Struct, frozen=True, kw_only=True):
    data: list[SettingRecord]
