"""What can happen to an alert: created, investigated, resolved."""

import asyncpg

from tapgate import ids
from tapgate.audit.changes import diff_records
from tapgate.audit.trail import AuditTrail, Changes
from tapgate.compliance.alerts import model, queries
from tapgate.compliance.alerts.model import Alert, Investigation, NewAlert, Resolution
from tapgate.edge.request_context import RequestContext
from tapgate.errors import Code
from tapgate.ledger.commands import ReviewDecision, TransactionResult
from tapgate.notifications.events import publish

_trail = AuditTrail("alert")
_of_transactions = AuditTrail("transaction")


async def create(call: RequestContext, new: NewAlert) -> tuple[Alert, bool]:
    """Return the alert and whether it is new; otherwise an open one occurred once more."""
    services = call.services
    now = services.clock()
    async with services.database.transaction() as tx:
        subscriber_id, transaction_id, rule_id = await queries.known_subject(tx, new)
        asked = Alert(
            id=services.new_id(),
            subscriber_id=subscriber_id,
            transaction_id=transaction_id,
            rule_id=rule_id,
            alert_type=new.alert_type,
            severity=new.severity,
            status="open",
            review=False,
            details=new.details,
            occurrences=1,
            resolution_notes=None,
            resolved_by=None,
            resolved_at=None,
            created_at=now,
            updated_at=now,
        )
        alert = await queries.add(tx, asked, model.open_key(new))
        if alert.id != asked.id:
            more = {"occurrences": (alert.occurrences - 1, alert.occurrences)}
            await _record(tx, call, alert, "repeated", changes=more)
            return alert, False
        await _record(tx, call, alert, "created", changes={"status": (None, alert.status)})
        await publish(tx, services, "alert.created", model.shown(alert))
    return alert, True


async def investigate(call: RequestContext, alert_id: int, investigation: Investigation) -> Alert:
    """The note is kept in the audit log."""
    async with call.services.database.transaction() as tx:
        before = await queries.lock(tx, alert_id)
        after = model.investigated(before, call.services.clock())
        await queries.save(tx, after)
        await _record(
            tx,
            call,
            after,
            "investigated",
            reason=investigation.note,
            changes=_changes(before, after),
        )
    return after


async def resolve(call: RequestContext, alert_id: int, resolution: Resolution) -> tuple[Alert, str]:
    """The alert, and what became of a transaction that it held."""
    database = call.services.database
    alert = await queries.get(database, alert_id)
    model.require_unresolved(alert)
    model.require_decision_where_due(alert, resolution)
    if alert.review:
        return await _settle(call, alert, resolution)
    async with database.transaction() as tx:
        return await _close(tx, call, alert_id, resolution, {}), "Alert resolved"


async def _settle(call: RequestContext, alert: Alert, resolution: Resolution) -> tuple[Alert, str]:
    """The ledger settles the transaction and has the alert closed in the same database
    transaction: neither is ever done without the other, and of two decisions one is carried out.
    """
    assert alert.transaction_id is not None
    release = resolution.transaction_decision == "release"
    closed = alert

    async def close(tx: asyncpg.Connection, answer: TransactionResult) -> None:
        nonlocal closed
        # Unresolved for certain: who resolves a review settles its transaction, just now.
        closed = await _close(tx, call, alert.id, resolution, _fate(resolution, answer.status))
        await _of_transactions.record(
            tx,
            call,
            ids.encode(ids.TRANSACTION, answer.transaction_id),
            answer.status,
            reason=resolution.resolution_notes,
            changes={"status": ("under_review", answer.status)},
        )

    outcome = await call.services.ledger.submit(
        ReviewDecision(transaction_id=alert.transaction_id, release=release, before_commit=close)
    )
    if outcome.code == Code.ALREADY_RESOLVED:
        return await _close_after(call, alert, resolution)
    return closed, _said(release, outcome.require_accepted())


async def _close_after(
    call: RequestContext, alert: Alert, resolution: Resolution
) -> tuple[Alert, str]:
    """The transaction is under review no more. Either somebody else has just resolved the alert,
    or the transaction was settled without it: then the alert follows what happened."""
    async with call.services.database.transaction() as tx:
        status = await queries.status_of_transaction(tx, alert.transaction_id)
        closed = await _close(tx, call, alert.id, resolution, {})
    return closed, f"Alert resolved; its transaction had been decided before: {status}"


def _said(release: bool, answer: TransactionResult) -> str:
    if not release:
        return "Alert resolved; the transaction was rejected and its funds are free again"
    if answer.status == "completed":
        return "Alert resolved; the transaction was released"
    code = (answer.details or {}).get("failure_code")
    return (
        f"Alert resolved; the transaction could not be released ({code}): it failed and its funds"
        " are free again"
    )


def _fate(resolution: Resolution, status: str) -> Changes:
    return {
        "transaction_decision": (None, resolution.transaction_decision),
        "transaction_status": ("under_review", status),
    }


async def _close(
    tx: asyncpg.Connection,
    call: RequestContext,
    alert_id: int,
    resolution: Resolution,
    fate: Changes,
) -> Alert:
    services = call.services
    before = await queries.lock(tx, alert_id)
    model.require_unresolved(before)
    after = model.resolved(before, resolution, call.principal.admin_id, services.clock())
    await queries.save(tx, after)
    await _record(
        tx,
        call,
        after,
        "resolved",
        reason=resolution.resolution_notes,
        changes={**_changes(before, after), **fate},
    )
    await publish(tx, services, "alert.resolved", model.shown(after))
    return after


def _changes(before: Alert, after: Alert) -> Changes:
    return diff_records(model.shown(before), model.shown(after))


async def _record(
    tx: asyncpg.Connection,
    call: RequestContext,
    alert: Alert,
    action: str,
    *,
    reason: str | None = None,
    changes: Changes,
) -> None:
    await _trail.record(
        tx,
        call,
        alert.public_id,
        action,
        reason=reason,
        changes=changes,
    )
