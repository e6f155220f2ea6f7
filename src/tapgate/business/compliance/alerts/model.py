"""Stored alerts, their public records, and their resolution."""

from datetime import datetime
from typing import Any

import msgspec

from tapgate.core.records import build_record
from tapgate.ledger.rules.compliance import remove_personal_details
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.compliance import (
    RESOLVED_STATUSES,
    AlertRecord,
    AlertStatus,
    NewAlert,
    Resolution,
)

#: Alert type for a chat user's request to be contacted. `details.asked_by` is the user's phone
#: number, or the channel address if the phone number is not available.
SUPPORT_REQUEST = "SUPPORT_REQUEST"

_MAX_KEY_LENGTH = 255
#: Older notes are only in the audit log.
_MAX_NOTES_LENGTH = 10_000


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
    assignee: int | None
    assignee_name: str | None
    investigation_notes: str | None
    resolution_notes: str | None
    resolved_by: int | None
    resolved_at: datetime | None
    created_at: datetime
    updated_at: datetime

    @property
    def public_id(self) -> str:
        return ids.encode(ids.ALERT, self.id)


def to_record(alert: Alert, *, masked: bool = False) -> AlertRecord:
    record = build_record(AlertRecord, alert, id=alert.public_id)
    if not masked:
        return record
    return msgspec.structs.replace(
        record,
        details=remove_personal_details(alert.details),
        investigation_notes=None,
        resolution_notes=None,
        masked=True,
    )


def get_open_key(alert: NewAlert) -> str | None:
    """Return the key that identifies repeats of a support request, or None if there is no key."""
    asked_by = alert.details.get("asked_by") if alert.alert_type == SUPPORT_REQUEST else None
    return asked_by[:_MAX_KEY_LENGTH] if isinstance(asked_by, str) and asked_by else None


def mark_investigating(alert: Alert, note: str | None, now: datetime) -> Alert:
    """Return the alert under investigation, with a note below earlier ones."""
    require_unresolved(alert)
    notes = [text for text in (alert.investigation_notes, note) if text is not None]
    return msgspec.structs.replace(
        alert,
        status=AlertStatus.INVESTIGATING,
        investigation_notes="\n".join(notes)[-_MAX_NOTES_LENGTH:] if notes else None,
        updated_at=now,
    )


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
