"""Operations on compliance alerts, rules and checks."""

from collections.abc import Mapping, Sequence
from typing import Any

from tapgate_client.declaration import M, OperationGroup, acts, lists, reads, sets
from tapgate_client.encoding import Money, Threshold
from tapgate_client.schemas.compliance import (
    AlertCreated,
    AlertRecord,
    AlertResponse,
    ComplianceCheckResult,
    RuleRecord,
)
from tapgate_client.schemas.pagination import Page


class Compliance(OperationGroup[M]):
    @reads("POST /api/v1/compliance/check")
    def check(
        self,
        *,
        subscriber_id: str,
        amount: Money,
        transaction_type: str,
        currency: str | None = None,
    ) -> ComplianceCheckResult:
        """Check whether a transaction would be allowed, without executing it."""

    @acts("POST /api/v1/compliance/alerts")
    def create_alert(
        self,
        *,
        alert_type: str,
        details: Mapping[str, Any],
        subscriber_id: str | None = None,
        transaction_id: str | None = None,
        severity: str | None = None,
        rule_id: str | None = None,
    ) -> AlertCreated:
        """Create an alert.

        If the same rule and subscriber already have an unresolved alert, the `occurrences` count of
        that alert is incremented instead.
        """

    @lists("GET /api/v1/compliance/alerts")
    def list_alerts(
        self,
        *,
        status: str | None = None,
        severity: str | None = None,
        subscriber_id: str | None = None,
        transaction_id: str | None = None,
        assignee: str | None = None,
        held: bool | None = None,
        order: str | None = None,
        card_serial: str | None = None,
        limit: int | None = None,
    ) -> Page[AlertRecord]:
        """List alerts. With `held`, only unresolved alerts that hold a transaction.

        `assignee` is an admin's ID or `none`, `order` is `newest` or `oldest`.
        """

    @reads("GET /api/v1/compliance/alerts/{id}")
    def get_alert(self, id: str) -> AlertRecord: ...

    @sets("POST /api/v1/compliance/alerts/{id}/assign")
    def assign_alert(self, id: str) -> AlertResponse:
        """Assign an alert to the calling admin."""

    @sets("POST /api/v1/compliance/alerts/{id}/unassign")
    def unassign_alert(self, id: str) -> AlertResponse:
        """Remove the assignee of an alert."""

    @acts("POST /api/v1/compliance/alerts/{id}/investigate")
    def investigate_alert(self, id: str, *, note: str | None = None) -> AlertResponse: ...

    @acts("POST /api/v1/compliance/alerts/{id}/resolve")
    def resolve_alert(
        self,
        id: str,
        *,
        status: str,
        resolution_notes: str,
        transaction_decision: str | None = None,
    ) -> AlertResponse:
        """Resolve an alert.

        `transaction_decision` releases or rejects the held transaction. The decision is required if
        the alert holds a transaction.
        """

    @lists("GET /api/v1/compliance/rules")
    def list_rules(self, *, limit: int | None = None) -> Page[RuleRecord]: ...

    @reads("GET /api/v1/compliance/rules/{id}")
    def get_rule(self, id: str) -> RuleRecord: ...

    @acts("POST /api/v1/compliance/rules")
    def create_rule(
        self,
        *,
        name: str,
        type: str,
        transaction_types: Sequence[str],
        threshold: Threshold,
        action: str,
        subject: str | None = None,
        currency: str | None = None,
        window_seconds: int | None = None,
        severity: str | None = None,
        status: str | None = None,
    ) -> RuleRecord:
        """Create a rule. `subject` is the party it applies to: `payer`, `payee` or `agent`."""

    @sets("DELETE /api/v1/compliance/rules/{id}")
    def delete_rule(self, id: str) -> None:
        """Delete a rule. Its alerts are kept."""

    @sets("PUT /api/v1/compliance/rules/{id}")
    def update_rule(
        self,
        id: str,
        *,
        name: str | None = None,
        subject: str | None = None,
        transaction_types: Sequence[str] | None = None,
        threshold: Threshold | None = None,
        currency: str | None = None,
        window_seconds: int | None = None,
        action: str | None = None,
        severity: str | None = None,
        status: str | None = None,
    ) -> RuleRecord:
        """Update the given fields.

        `threshold` is an amount or, for some rule types, a count.
        """
