"""An audit entry: as clients see it, and as the bytes that the chain is made of."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from tapgate import clock, ids
from tapgate.edge.fields import Choice

#: Stands for what is not told.
MASK = "***"

#: The columns of `audit_entries` that `shown` and `canonical` read.
COLUMNS = """id, sequence, occurred_at, event, actor, resource_type, resource_id, result, reason,
    changes, ip, request_id, previous_hash, hash"""
AuditResult = Annotated[str, Choice("success", "failure", "denied", name="AuditResult")]


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What happened, who did it, and its place in the chain (null until it is sealed)."""

    id: str
    sequence: int
    occurred_at: str
    event: str
    actor: dict[str, Any]
    resource_type: str
    resource_id: str | None
    result: AuditResult
    reason: str | None
    changes: dict[str, Any]
    ip: str | None
    request_id: str | None
    previous_hash: str | None
    hash: str | None


def to_record(row: Mapping[str, Any], *, masked: bool = False) -> AuditEntry:
    """Masked for whom what it is about is closed: that something was done, but not what."""
    facts = _build_fields(row)
    if masked:
        facts["changes"] = {field: [MASK, MASK] for field in facts["changes"]}
        facts["reason"] = facts["reason"] and MASK
    return AuditEntry(
        **facts, previous_hash=_encode_hex(row["previous_hash"]), hash=_encode_hex(row["hash"])
    )


def encode_canonical(row: Mapping[str, Any]) -> bytes:
    """The entry as clients see it, without the two hashes: compact JSON, keys sorted.

    Who has read the log over HTTP can recompute the chain from it, but for masked entries.
    """
    return _encoder.encode(_build_fields(row))


def encode_public_id(row: Mapping[str, Any]) -> str:
    return ids.encode(ids.AUDIT_ENTRY, row["id"])


_encoder = msgspec.json.Encoder(order="sorted")


def _build_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": encode_public_id(row),
        "sequence": row["sequence"],
        "occurred_at": clock.format_rfc3339(row["occurred_at"]),
        "event": row["event"],
        "actor": row["actor"],
        "resource_type": row["resource_type"],
        "resource_id": row["resource_id"],
        "result": row["result"],
        "reason": row["reason"],
        "changes": row["changes"],
        "ip": row["ip"],
        "request_id": row["request_id"],
    }


def _encode_hex(digest: bytes | None) -> str | None:
    return None if digest is None else digest.hex()
