"""Stored alerts, their public records, and their resolution."""

from datetime import datetime
from typing import Any

import msgspec

from tapgate import clock, ids
from tapgate.errors import ApiError, Code, invalid_field, require_found
from tapgate.rules.compliance import remove_personal_details
from tapgate.schemas.compliance import (
    RESOLVED_STATUSES,
    AlertRecord,
    AlertStatus,
    NewAlert,
    Resolution,
)

#: Alert type for a chat user who asks to be contacted. `details.asked_by` is the user's phone
#: number, or the channel address if the phone number is not available.
SUPPORT_REQUEST = "SUPPORT_REQUEST"

_MAX_KEY_LENGTH = 255


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    subscriber_id: int | None
    transaction_id: int | None
    rule_id: int | None
    alert_type: str
    severity: str
    status: str
    review: bool  # a transaction's funds are held until the alert is resolved
    details: dict[str, Any]
    occurrences: int
    resolution_notes: str | None
    resolved_by: int | None
    resolved_at: datetime | None
    created_at: datetime
    updated_at: datetime

    @property
    def public_id(self) -> str:
        return ids.encode(ids.ALERT, self.id)


def to_record(alert: Alert, *, masked: bool = False) -> AlertRecord:
    record = _to_full_record(alert)
    if not masked:
        return record
    return msgspec.structs.replace(
        record, details=remove_personal_details(alert.details), resolution_notes=None, masked=True
    )


def _to_full_record(alert: Alert) -> AlertRecord:
    return AlertRecord(
        id=alert.public_id,
        subscriber_id=_encode_id(ids.SUBSCRIBER, alert.subscriber_id),
        transaction_id=_encode_id(ids.TRANSACTION, alert.transaction_id),
        rule_id=_encode_id(ids.RULE, alert.rule_id),
        alert_type=alert.alert_type,
        severity=alert.severity,
        status=alert.status,
        details=alert.details,
        occurrences=alert.occurrences,
        resolution_notes=alert.resolution_notes,
        resolved_by=_encode_id(ids.ADMIN, alert.resolved_by),
        resolved_at=None if alert.resolved_at is None else clock.format_rfc3339(alert.resolved_at),
        created_at=clock.format_rfc3339(alert.created_at),
        updated_at=clock.format_rfc3339(alert.updated_at),
    )


def _encode_id(prefix: str, number: int | None) -> str | None:
    return None if number is None else ids.encode(prefix, number)


def get_open_key(alert: NewAlert) -> str | None:
    """Return the key that identifies repeats of a support request, or None if there is no key."""
    asked_by = alert.details.get("asked_by") if alert.alert_type == SUPPORT_REQUEST else None
    return asked_by[:_MAX_KEY_LENGTH] if isinstance(asked_by, str) and asked_by else None


def mark_investigating(alert: Alert, now: datetime) -> Alert:
    require_unresolved(alert)
    return msgspec.structs.replace(alert, status=AlertStatus.INVESTIGATING, updated_at=now)


def mark_resolved(
    alert: Alert, resolution: Resolution, admin_id: int | None, now: datetime
) -> Alert:
    return msgspec.structs.replace(
        alert,
        status=resolution.status,
        resolution_notes=resolution.resolution_notes,
        resolved_by=admin_id,
        resolved_at=now,
        updated_at=now,
    )


def require_unresolved(alert: Alert) -> None:
    if alert.status in RESOLVED_STATUSES:
        raise ApiError(Code.ALREADY_RESOLVED)


def require_transaction_decision(alert: Alert, resolution: Resolution) -> None:
    """Require a transaction decision if the alert holds a transaction, and reject one otherwise."""
    if alert.review and resolution.transaction_decision is None:
        raise invalid_field(
            "transaction_decision", "is required, because a transaction is held for review"
        )
    if not alert.review and resolution.transaction_decision is not None:
        raise invalid_field(
            "transaction_decision", "must not be set, because no transaction is held for review"
        )


def decode_alert_id(public_id: str) -> int:
    return require_found(ids.decode(ids.ALERT, public_id), Code.ALERT_NOT_FOUND)
