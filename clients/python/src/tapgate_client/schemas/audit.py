"""Audit log requests and responses."""

from enum import StrEnum
from typing import Annotated, Any

import msgspec

from tapgate_client.schemas.pagination import Page, PageQuery
from tapgate_client.schemas.periods import PeriodBound
from tapgate_client.schemas.values import Example, Id, IpAddress, Name, RequestId, Time, Word

_Hash = Annotated[str, Example("9f86d081" * 8)]


class AuditResult(StrEnum):
    SUCCESS = "success"
    FAILURE = "failure"
    DENIED = "denied"


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An audited event and its actor. The hashes are null until the entry is sealed."""

    id: Id
    sequence: int
    occurred_at: Time
    event: Annotated[Word, Example("subscriber.blocked")]
    actor: dict[str, Any]
    resource_type: Annotated[str, Example("subscriber")]
    resource_id: str | None
    result: AuditResult
    reason: str | None
    changes: dict[str, Any]
    ip: IpAddress | None
    request_id: RequestId | None
    previous_hash: _Hash | None
    hash: _Hash | None


class NamedRecord(msgspec.Struct, frozen=True, kw_only=True):
    id: Id
    name: Name


class AuditPage(Page[AuditEntry], kw_only=True):
    """One page of the audit log.

    `names` has the names of records that the entries refer to. Restricted subscribers are absent
    until the admin verifies a one-time code.
    """

    names: list[NamedRecord]


class AuditLogQuery(PageQuery, kw_only=True):
    actor_id: str | None = None
    event: Annotated[Word, Example("subscriber.blocked")] | None = None
    resource_type: Annotated[str, Example("subscriber")] | None = None
    resource_id: str | None = None
    result: AuditResult | None = None
    from_: PeriodBound | None = msgspec.field(default=None, name="from")
    to: PeriodBound | None = None


class VerifyQuery(msgspec.Struct, kw_only=True):
    full: bool = False


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """Result of verifying the audit log, with the first mismatch if there is one.

    `first_broken` is the ID for the first entry that does not match. If all entries match but the
    chain ends too early or its last hash differs from the recorded head, `first_broken` is the
    sequence number of that head.
    """

    valid: bool
    entries: int
    unsealed: int
    first_broken: str | None
