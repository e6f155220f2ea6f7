"""Compliance: what is noticed, by which rules, and whether a payment would pass them."""

from collections.abc import Mapping, Sequence
from typing import Any

from tapgate.client.operation import (
    Group,
    Listing,
    M,
    Operation,
    act,
    ask,
    delete,
    operation,
    put,
    read,
)
from tapgate.client.pages import listed, listing
from tapgate.client.records.compliance import Alert, AlertCreated, AlertHandled, Rule, Verdict
from tapgate.client.values import Money, given, money

_ALERTS = "/api/v1/compliance/alerts"
_RULES = "/api/v1/compliance/rules"


class Compliance(Group[M]):
    @operation
    def check(
        self,
        *,
        subscriber_id: str,
        amount: Money,
        transaction_type: str,
        currency: str | None = None,
    ) -> Operation[Verdict]:
        """Whether a payment would pass; nothing is moved or counted."""
        body = given(
            subscriber_id=subscriber_id,
            amount=money(amount),
            transaction_type=transaction_type,
            currency=currency,
        )
        return ask("/api/v1/compliance/check", Verdict, body)

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
    ) -> Operation[AlertCreated]:
        """An open one of the same kind about the same subscriber is counted up instead."""
        body = given(
            alert_type=alert_type,
            details=details,
            subscriber_id=subscriber_id,
            transaction_id=transaction_id,
            severity=severity,
            rule_id=rule_id,
        )
        return act(_ALERTS, AlertCreated, body)

    @listing
    def list_alerts(
        self,
        *,
        status: str | None = None,
        severity: str | None = None,
        subscriber_id: str | None = None,
        transaction_id: str | None = None,
        limit: int | None = None,
    ) -> Listing[Alert]:
        query = given(
            status=status,
            severity=severity,
            subscriber_id=subscriber_id,
            transaction_id=transaction_id,
            limit=limit,
        )
        return listed(_ALERTS, Alert, query)

    @operation
    def get_alert(self, id: str) -> Operation[Alert]:
        return read(f"{_ALERTS}/{{id}}", Alert, id=id)

    @operation
    def investigate_alert(self, id: str, *, note: str | None = None) -> Operation[AlertHandled]:
        return act(f"{_ALERTS}/{{id}}/investigate", AlertHandled, given(note=note), id=id)

    @operation
    def resolve_alert(
        self,
        id: str,
        *,
        status: str,
        resolution_notes: str,
        transaction_decision: str | None = None,
    ) -> Operation[AlertHandled]:
        """With a decision about the payment that is held, where there is one."""
        body = given(
            status=status,
            resolution_notes=resolution_notes,
            transaction_decision=transaction_decision,
        )
        return act(f"{_ALERTS}/{{id}}/resolve", AlertHandled, body, id=id)

    @listing
    def list_rules(self, *, limit: int | None = None) -> Listing[Rule]:
        return listed(_RULES, Rule, given(limit=limit))

    @operation
    def get_rule(self, id: str) -> Operation[Rule]:
        return read(f"{_RULES}/{{id}}", Rule, id=id)

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
    ) -> Operation[Rule]:
        """Create a rule about the `payer`, the `payee` or the `agent` of transactions."""
        body = given(
            name=name,
            type=type,
            subject=subject,
            transaction_types=transaction_types,
            threshold=_threshold(threshold),
            currency=currency,
            window_seconds=window_seconds,
            action=action,
            severity=severity,
            status=status,
        )
        return act(_RULES, Rule, body)

    @operation
    def delete_rule(self, id: str) -> Operation[None]:
        """Delete a rule; its alerts stay."""
        return delete(f"{_RULES}/{{id}}", id=id)

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
    ) -> Operation[Rule]:
        """What is left out stays as it is. A threshold is an amount, or for some rules a number of
        times."""
        body = given(
            name=name,
            subject=subject,
            transaction_types=transaction_types,
            threshold=_threshold(threshold),
            currency=currency,
            window_seconds=window_seconds,
            action=action,
            severity=severity,
            status=status,
        )
        return put(f"{_RULES}/{{id}}", Rule, body, id=id)


def _threshold(value: Money | int | None) -> str | int | None:
    return value if value is None or isinstance(value, int) else money(value)
