"""Stored alerts, their public records, and their resolution."""

from datetime import datetime
from typing import Annotated, Any

import msgspec

from tapgate import clock, ids
from tapgate.compliance.severity import Severity
from tapgate.errors import ApiError, Code, invalid_field
from tapgate.ledger.alerts import remove_personal_details
from tapgate.schemas.fields import Choice, FreeText, IdRule, Metadata, Text
from tapgate.schemas.pagination import PageQuery

AlertStatus = Annotated[
    str, Choice("open", "investigating", "resolved", "false_positive", name="AlertStatus")
]

#: Alert type for a chat user who asks to be contacted. `details.asked_by` is the user's phone
#: number, or the channel address if the phone number is not available.
SUPPORT_REQUEST = "SUPPORT_REQUEST"

_MAX_KEY_LENGTH = 255
_RESOLVED_STATUSES = frozenset({"resolved", "false_positive"})


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


class AlertRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Alert as returned by the API.

    `masked` is present, and true, if the alert concerns a restricted subscriber and the caller has
    not verified a one-time code. Then `details` contains only the fields written by a compliance
    rule, and `resolution_notes` is null.
    """

    id: str
    subscriber_id: str | None
    transaction_id: str | None
    rule_id: str | None
    alert_type: str
    severity: Severity
    status: AlertStatus
    details: dict[str, Any]
    occurrences: int
    resolution_notes: str | None
    resolved_by: str | None
    resolved_at: str | None
    created_at: str
    updated_at: str
    masked: bool | msgspec.UnsetType = msgspec.UNSET


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


class AlertFilters(PageQuery, kw_only=True):
    status: AlertStatus | None = None
    severity: Severity | None = None
    subscriber_id: Annotated[str, IdRule(ids.SUBSCRIBER)] | None = None
    transaction_id: Annotated[str, IdRule(ids.TRANSACTION)] | None = None


class NewAlert(msgspec.Struct, kw_only=True):
    subscriber_id: Text | None = None
    transaction_id: Text | None = None
    alert_type: Text
    severity: Severity = "MEDIUM"
    details: Metadata
    rule_id: Text | None = None


class Investigation(msgspec.Struct, kw_only=True):
    note: FreeText | None = None


class Resolution(msgspec.Struct, kw_only=True):
    status: Annotated[str, Choice("resolved", "false_positive", name="AlertResolution")]
    resolution_notes: FreeText
    transaction_decision: (
        Annotated[str, Choice("release", "reject", name="TransactionDecision")] | None
    ) = None


def get_open_key(alert: NewAlert) -> str | None:
    """Return the key that identifies repeats of a support request, or None if there is no key."""
    asked_by = alert.details.get("asked_by") if alert.alert_type == SUPPORT_REQUEST else None
    return asked_by[:_MAX_KEY_LENGTH] if isinstance(asked_by, str) and asked_by else None


def mark_investigating(alert: Alert, now: datetime) -> Alert:
    require_unresolved(alert)
    return msgspec.structs.replace(alert, status="investigating", updated_at=now)


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
    if alert.status in _RESOLVED_STATUSES:
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


def not_found() -> ApiError:
    return ApiError(Code.ALERT_NOT_FOUND)


def decode_alert_id(text: str) -> int:
    number = ids.decode(ids.ALERT, text)
    if number is None:
        raise not_found()
    return number
