"""Audit log records."""

from typing import Any

from tapgate.client.records.base import Record


class AuditEntry(Record, frozen=True, kw_only=True):
    id: str
    sequence: int
    occurred_at: str
    event: str
    actor: dict[str, Any]
    resource_type: str
    resource_id: str | None
    result: str
    reason: str | None
    changes: dict[str, Any]
    ip: str | None
    request_id: str | None
    previous_hash: str | None
    hash: str | None


class AuditVerification(Record, frozen=True, kw_only=True):
    valid: bool
    entries: int
    unsealed: int
    first_broken: str | None
