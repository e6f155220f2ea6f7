"""Audit entries as public records, and in the canonical form that the chain hashes."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tapgate_client import clock, ids
from tapgate_client.schemas.audit import AuditEntry

#: Placeholder for values that are not disclosed.
MASK = "***"

#: The columns of `audit_entries` that `to_record` and `encode_canonical` read.
COLUMNS = """id, sequence, occurred_at, event, actor, resource_type, resource_id, result, reason,
    changes, ip, request_id, previous_hash, hash"""


def to_record(row: Mapping[str, Any], *, masked: bool = False) -> AuditEntry:
    """Return an entry's public record.

    A masked record shows which fields changed but hides their values and the reason. It is for
    callers that may not see the entry's subject.
    """
    fields = _build_fields(row)
    if masked:
        fields["changes"] = {field: [MASK, MASK] for field in fields["changes"]}
        fields["reason"] = fields["reason"] and MASK
    return AuditEntry(
        **fields, previous_hash=_encode_hex(row["previous_hash"]), hash=_encode_hex(row["hash"])
    )


def encode_canonical(row: Mapping[str, Any]) -> bytes:
    """Return the canonical form: the public record without its hashes, as compact sorted JSON.

    A client can therefore recompute the chain from the log that it reads over HTTP, except for
    masked entries.
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
