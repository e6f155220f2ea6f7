"""Operations on alerts: create, investigate and resolve."""

import asyncpg

from tapgate import ids
from tapgate.api.request_context import RequestContext
from tapgate.audit.changes import diff_records
from tapgate.audit.trail import AuditTrail, Changes
from tapgate.compliance.alerts import model, queries
from tapgate.compliance.alerts.model import Alert
from tapgate.errors import Code
from tapgate.ledger.commands import ReviewDecision, TransactionResult
from tapgate.notifications.events import publish
from tapgate.schemas.compliance import (
    AlertStatus,
    Investigation,
    NewAlert,
    Resolution,
    TransactionDecision,
)
from tapgate.schemas.transactions import TransactionStatus

_trail = AuditTrail("alert")
_transaction_trail = AuditTrail("transaction")


async def create(request: RequestContext, new: NewAlert) -> tuple[Alert, bool]:
    """Create an alert, or count another occurrence of a matching unresolved one.

    Returns the alert and whether it is new.
    """
    services = request.services
    now = services.clock()
    async with services.transaction() as tx:
        subscriber_id, transaction_id, rule_id = await queries.resolve_subject(tx, new)
        candidate = Alert(
            id=services.new_id(),
            subscriber_id=subscriber_id,
            transaction_id=transaction_id,
            rule_id=rule_id,
            alert_type=new.alert_type,
            severity=new.severity,
            status=AlertStatus.OPEN,
            review=False,
            details=new.details,
            occurrences=1,
            resolution_notes=None,
            resolved_by=None,
            resolved_at=None,
            created_at=now,
            updated_at=now,
        )
        alert = await queries.add(tx, candidate, model.get_open_key(new))
        if alert.id != candidate.id:
            changes = {"occurrences": (alert.occurrences - 1, alert.occurrences)}
            await _record_audit_entry(tx, request, alert, "repeated", changes=changes)
            return alert, False
        await _record_audit_entry(
            tx, request, alert, "created", changes={"status": (None, alert.status)}
        )
        await publish(tx, "alert.created", model.to_record(alert))
    return alert, True


async def investigate(
    request: RequestContext, alert_id: int, investigation: Investigation
) -> Alert:
    """Mark an alert as under investigation. The note is stored in the audit log."""
    async with request.services.transaction() as tx:
        before = await queries.lock(tx, alert_id)
        after = model.mark_investigating(before, request.services.clock())
        await queries.save(tx, after)
        await _record_audit_entry(
            tx,
            request,
            after,
            "investigated",
            reason=investigation.note,
            changes=_get_changes(before, after),
        )
    return after


async def resolve(
    request: RequestContext, alert_id: int, resolution: Resolution
) -> tuple[Alert, str]:
    """Resolve an alert, and return it with a message about the outcome of any held transaction."""
    database = request.services.database
    alert = await queries.get(database, alert_id)
    model.require_unresolved(alert)
    model.require_transaction_decision(alert, resolution)
    if alert.review:
        return await _resolve_review(request, alert, resolution)
    async with request.services.transaction() as tx:
        return await _resolve_alert(tx, request, alert_id, resolution, {}), "Alert resolved"


async def _resolve_review(
    request: RequestContext, alert: Alert, resolution: Resolution
) -> tuple[Alert, str]:
    """Resolve an alert that holds a transaction.

    The ledger applies the review decision and closes the alert in the same database transaction.
    Either both happen or neither does, and only one of two concurrent decisions is applied.
    """
    assert alert.transaction_id is not None
    release = resolution.transaction_decision == TransactionDecision.RELEASE
    resolved = alert

    async def close_alert(tx: asyncpg.Connection, result: TransactionResult) -> None:
        nonlocal resolved
        # No other request can have resolved the alert, because that requires the review decision
        # that is applied here.
        resolved = await _resolve_alert(
            tx, request, alert.id, resolution, _build_decision_changes(resolution, result.status)
        )
        await _transaction_trail.record(
            tx,
            request.actor,
            ids.encode(ids.TRANSACTION, result.transaction_id),
            result.status,
            reason=resolution.resolution_notes,
            changes={"status": (TransactionStatus.UNDER_REVIEW, result.status)},
        )

    outcome = await request.services.ledger.submit(
        ReviewDecision(
            transaction_id=alert.transaction_id, release=release, before_commit=close_alert
        )
    )
    if outcome.code == Code.ALREADY_RESOLVED:
        return await _resolve_decided_review(request, alert, resolution)
    return resolved, _build_message(release, outcome.require_accepted())


async def _resolve_decided_review(
    request: RequestContext, alert: Alert, resolution: Resolution
) -> tuple[Alert, str]:
    """Resolve an alert whose transaction is no longer under review.

    Either a concurrent request has just resolved the alert, which raises `ALREADY_RESOLVED`, or the
    transaction was decided without the alert. In the second case only the alert is resolved.
    """
    async with request.services.transaction() as tx:
        status = await queries.get_transaction_status(tx, alert.transaction_id)
        resolved = await _resolve_alert(tx, request, alert.id, resolution, {})
    return resolved, f"Alert resolved. The transaction was decided earlier: {status}."


def _build_message(release: bool, result: TransactionResult) -> str:
    if not release:
        return "Alert resolved. The transaction was rejected and its funds returned to the sender."
    if result.status == TransactionStatus.COMPLETED:
        return "Alert resolved. The transaction was released."
    code = (result.details or {}).get("failure_code")
    return (
        f"Alert resolved. The transaction could not be released ({code})."
        " Its funds were returned to the sender."
    )


def _build_decision_changes(resolution: Resolution, status: str) -> Changes:
    return {
        "transaction_decision": (None, resolution.transaction_decision),
        "transaction_status": (TransactionStatus.UNDER_REVIEW, status),
    }


async def _resolve_alert(
    tx: asyncpg.Connection,
    request: RequestContext,
    alert_id: int,
    resolution: Resolution,
    decision_changes: Changes,
) -> Alert:
    services = request.services
    before = await queries.lock(tx, alert_id)
    model.require_unresolved(before)
    after = model.mark_resolved(before, resolution, request.principal.admin_id, services.clock())
    await queries.save(tx, after)
    await _record_audit_entry(
        tx,
        request,
        after,
        "resolved",
        reason=resolution.resolution_notes,
        changes={**_get_changes(before, after), **decision_changes},
    )
    await publish(tx, "alert.resolved", model.to_record(after))
    return after


def _get_changes(before: Alert, after: Alert) -> Changes:
    return diff_records(model.to_record(before), model.to_record(after))


async def _record_audit_entry(
    tx: asyncpg.Connection,
    request: RequestContext,
    alert: Alert,
    action: str,
    *,
    reason: str | None = None,
    changes: Changes,
) -> None:
    await _trail.record(
        tx,
        request.actor,
        alert.public_id,
        action,
        reason=reason,
        changes=changes,
    )
