"""Compliance alert, rule and check records."""

from typing import Any

from tapgate.client.records.base import Confirmation, Record


class Violation(Record, frozen=True, kw_only=True):
    code: str
    message: str


class ComplianceCheckResult(Record, frozen=True, kw_only=True):
    allowed: bool
    risk_level: str
    score: int
    violations: list[Violation]


class Alert(Record, frozen=True, kw_only=True):
    """A compliance alert.

    While the alert's subscriber is restricted and hidden from the caller, `masked` is true,
    `details` contains only what a rule wrote, and `resolution_notes` is None.
    """

    id: str
    subscriber_id: str | None
    transaction_id: str | None
    rule_id: str | None
    alert_type: str
    severity: str
    status: str
    details: dict[str, Any]
    occurrences: int
    resolution_notes: str | None
    resolved_by: str | None
    resolved_at: str | None
    created_at: str
    updated_at: str
    masked: bool = False


class CreateAlertResponse(Confirmation, frozen=True, kw_only=True):
    alert_id: str
    alert: Alert


class AlertResponse(Confirmation, frozen=True, kw_only=True):
    alert: Alert


class ComplianceRule(Record, frozen=True, kw_only=True):
    id: str
    name: str
    type: str
    subject: str
    transaction_types: list[str]
    threshold: str | int
    currency: str | None
    window_seconds: int | None
    action: str
    severity: str
    status: str
