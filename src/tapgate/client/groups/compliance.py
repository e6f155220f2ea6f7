"""Operations on compliance alerts, rules and checks."""

from collections.abc import Mapping, Sequence
from typing import Any

from tapgate.client.encoding import Money, encode_amount, omit_none
from tapgate.client.operation import (
    ListOperation,
    M,
    Operation,
    OperationGroup,
    build_delete,
    build_get,
    build_post,
    build_put,
    build_safe_post,
    operation,
)
from tapgate.client.pagination import build_list, list_operation
from tapgate.client.records.compliance import (
    Alert,
    AlertResponse,
    ComplianceCheckResult,
    ComplianceRule,
    CreateAlertResponse,
)

_ALERTS_PATH = "/api/v1/compliance/alerts"
_RULES_PATH = "/api/v1/compliance/rules"


class Compliance(OperationGroup[M]):
    @operation
    def check(
        self,
        *,
        subscriber_id: str,
        amount: Money,
        transaction_type: str,
        currency: str | None = None,
    ) -> Operation[ComplianceCheckResult]:
        """Check whether a transaction would be allowed, without executing it."""
        body = omit_none(
            subscriber_id=subscriber_id,
            amount=encode_amount(amount),
            transaction_type=transaction_type,
            currency=currency,
        )
        return build_safe_post("/api/v1/compliance/check", ComplianceCheckResult, body)

    @operation
    def create_alert(
        self,
        *,
        alert_type: str,
        details: Mapping[str, Any],
        subscriber_id: str | None = None,
        transaction_id: str | None = None,
        severity: str | None = None,
        rule_id: str | None = None,
    ) -> Operation[CreateAlertResponse]:
        """Create an alert.

        If the same rule and subscriber already have an unresolved alert, the `occurrences` count of
        that alert is incremented instead.
        """
        body = omit_none(
            alert_type=alert_type,
            details=details,
            subscriber_id=subscriber_id,
            transaction_id=transaction_id,
            severity=severity,
            rule_id=rule_id,
        )
        return build_post(_ALERTS_PATH, CreateAlertResponse, body)

    @list_operation
    def list_alerts(
        self,
        *,
        status: str | None = None,
        severity: str | None = None,
        subscriber_id: str | None = None,
        transaction_id: str | None = None,
        limit: int | None = None,
    ) -> ListOperation[Alert]:
        query = omit_none(
            status=status,
            severity=severity,
            subscriber_id=subscriber_id,
            transaction_id=transaction_id,
            limit=limit,
        )
        return build_list(_ALERTS_PATH, Alert, query)

    @operation
    def get_alert(self, id: str) -> Operation[Alert]:
        return build_get(f"{_ALERTS_PATH}/{{id}}", Alert, id=id)

    @operation
    def investigate_alert(self, id: str, *, note: str | None = None) -> Operation[AlertResponse]:
        return build_post(
            f"{_ALERTS_PATH}/{{id}}/investigate", AlertResponse, omit_none(note=note), id=id
        )

    @operation
    def resolve_alert(
        self,
        id: str,
        *,
        status: str,
        resolution_notes: str,
        transaction_decision: str | None = None,
    ) -> Operation[AlertResponse]:
        """Resolve an alert.

        `transaction_decision` releases or rejects the held transaction. The decision is required if
        the alert holds a transaction.
        """
        body = omit_none(
            status=status,
            resolution_notes=resolution_notes,
            transaction_decision=transaction_decision,
        )
        return build_post(f"{_ALERTS_PATH}/{{id}}/resolve", AlertResponse, body, id=id)

    @list_operation
    def list_rules(self, *, limit: int | None = None) -> ListOperation[ComplianceRule]:
        return build_list(_RULES_PATH, ComplianceRule, omit_none(limit=limit))

    @operation
    def get_rule(self, id: str) -> Operation[ComplianceRule]:
        return build_get(f"{_RULES_PATH}/{{id}}", ComplianceRule, id=id)

    @operation
    def create_rule(
        self,
        *,
        name: str,
        type: str,
        transaction_types: Sequence[str],
        threshold: Money | int,
        action: str,
        subject: str | None = None,
        currency: str | None = None,
        window_seconds: int | None = None,
        severity: str | None = None,
        status: str | None = None,
    ) -> Operation[ComplianceRule]:
        """Create a rule. `subject` is the party it applies to: `payer`, `payee` or `agent`."""
        body = omit_none(
            name=name,
            type=type,
            subject=subject,
            transaction_types=transaction_types,
            threshold=_encode_threshold(threshold),
            currency=currency,
            window_seconds=window_seconds,
            action=action,
            severity=severity,
            status=status,
        )
        return build_post(_RULES_PATH, ComplianceRule, body)

    @operation
    def delete_rule(self, id: str) -> Operation[None]:
        """Delete a rule. Its alerts are kept."""
        return build_delete(f"{_RULES_PATH}/{{id}}", id=id)

    @operation
    def update_rule(
        self,
        id: str,
        *,
        name: str | None = None,
        subject: str | None = None,
        transaction_types: Sequence[str] | None = None,
        threshold: Money | int | None = None,
        currency: str | None = None,
        window_seconds: int | None = None,
        action: str | None = None,
        severity: str | None = None,
        status: str | None = None,
    ) -> Operation[ComplianceRule]:
        """Update the given fields.

        `threshold` is an amount or, for some rule types, a count.
        """
        body = omit_none(
            name=name,
            subject=subject,
            transaction_types=transaction_types,
            threshold=_encode_threshold(threshold),
            currency=currency,
            window_seconds=window_seconds,
            action=action,
            severity=severity,
            status=status,
        )
        return build_put(f"{_RULES_PATH}/{{id}}", ComplianceRule, body, id=id)


def _encode_threshold(value: Money | int | None) -> str | int | None:
    return value if value is None or isinstance(value, int) else encode_amount(value)
