"""Operations on alerts: create, assign, investigate and resolve."""

import msgspec

from tapgate.auth.actors import Actor
from tapgate.business.compliance.alerts import model, queries
from tapgate.business.compliance.alerts.model import Alert
from tapgate.events.audit.trail import AuditTrail, Changes, diff_records
from tapgate.events.webhooks.webhook_events import publish
from tapgate.ledger.commands import ReviewDecision, TransactionResult
from tapgate.ledger.engine.group_commit import Ledger
from tapgate.runtime.store.transaction import OpenTransaction, Transaction
from tapgate_client import ids
from tapgate_client.errors import Code
from tapgate_client.schemas.compliance import NewAlert, Resolution, TransactionDecision
from tapgate_client.schemas.transactions import TransactionStatus

_trail = AuditTrail("alert")
_transaction_trail = AuditTrail("transaction")


async def create(tx: Transaction, actor: Actor, new: NewAlert) -> tuple[Alert, bool]:
    """Create an alert, or count another occurrence if a matching alert is unresolved.

    Returns the alert and whether it is new.
    """
    alert_id = tx.new_id()
    alert = await queries.add(tx, alert_id, new, model.get_open_key(new))
    changes: Changes
    if alert.id != alert_id:
        changes = {"occurrences": (alert.occurrences - 1, alert.occurrences)}
        await _trail.record(tx, actor, alert.public_id, "repeated", changes=changes)
        return alert, False
    changes = {"status": (None, alert.status)}
    await _trail.record(tx, actor, alert.public_id, "created", changes=changes)
    await publish(tx, "alert.created", model.to_record(alert))
    return alert, True


async def assign(
    tx: Transaction, actor: Actor, alert_id: int, assignee: int | None, action: str
) -> Alert:
    """Set the admin who handles an unresolved alert; None removes the admin."""
    before = await queries.get(tx, alert_id, for_update=True)
    model.require_unresolved(before)
    await queries.save(tx, msgspec.structs.replace(before, assignee=assignee, updated_at=tx.now()))
    after = await queries.get(tx, alert_id)
    old, new = model.to_record(before), model.to_record(after)
    await _trail.record_change(tx, actor, new.id, action, old, new)
    return after


async def investigate(tx: Transaction, actor: Actor, alert_id: int, note: str | None) -> Alert:
    """Mark an alert as under investigation. The note is also stored in the audit log."""
    before = await queries.get(tx, alert_id, for_update=True)
    after = model.mark_investigating(before, note, tx.now())
    await queries.save(tx, after)
    old = model.to_record(before)
    # The note is the audit entry's reason, so it is not also listed as a change.
    new = model.to_record(
        msgspec.structs.replace(after, investigation_notes=before.investigation_notes)
    )
    await _trail.record_change(tx, actor, new.id, "investigated", old, new, reason=note)
    return after


async def resolve(
    tx: Transaction,
    actor: Actor,
    alert_id: int,
    resolution: Resolution,
    decision_changes: Changes | None = None,
) -> Alert:
    """Resolve an alert whose transaction, if it held one, is decided."""
    before = await queries.get(tx, alert_id, for_update=True)
    model.require_unresolved(before)
    after = model.mark_resolved(before, resolution, ids.decode(ids.ADMIN, actor.id), tx.now())
    await queries.save(tx, after)
    old, new = model.to_record(before), model.to_record(after)
    changes = {**diff_records(old, new), **(decision_changes or {})}
    notes = resolution.resolution_notes
    await _trail.record(tx, actor, new.id, "resolved", reason=notes, changes=changes)
    await publish(tx, "alert.resolved", new)
    return after


async def resolve_review(
    open_transaction: OpenTransaction,
    ledger: Ledger,
    actor: Actor,
    alert: Alert,
    resolution: Resolution,
    *,
    approval_id: int | None = None,
) -> tuple[Alert, str]:
    """Resolve an alert that holds a transaction; also return a message about its outcome.

    The ledger applies the review decision and calls `close_alert` in the same database transaction.
    Either both happen or neither does, and only one of two concurrent decisions is applied. The
    approval with this ID ends in the same database transaction too.
    """
    assert alert.transaction_id is not None
    release = resolution.transaction_decision == TransactionDecision.RELEASE
    outcome = await ledger.submit(
        ReviewDecision(
            transaction_id=alert.transaction_id,
            release=release,
            alert_id=alert.id,
            resolution=resolution,
            audit=actor.build_audit_facts(resolution.resolution_notes),
            approval_id=approval_id,
        )
    )
    if outcome.code != Code.ALREADY_RESOLVED:
        message = _build_message(release, outcome.require_accepted())
        assert outcome.related is not None
        # Not read again: a database failure after the commit must not change the response.
        return msgspec.msgpack.decode(outcome.related, type=Alert), message
    # Either a concurrent request has just resolved the alert, which raises `ALREADY_RESOLVED`, or
    # the transaction was decided without the alert. Then only the alert is resolved.
    async with open_transaction() as tx:
        decided = await queries.get_transaction_status(tx, alert.transaction_id)
        resolved = await resolve(tx, actor, alert.id, resolution)
    return resolved, f"Alert resolved. The transaction was decided earlier: {decided}."


async def close_alert(
    tx: Transaction, decision: ReviewDecision, result: TransactionResult
) -> bytes:
    """Resolve the alert that a review decision closes, in the ledger's database transaction."""
    assert decision.alert_id is not None
    assert decision.resolution is not None
    assert decision.audit is not None
    actor = Actor.from_audit_facts(decision.audit)
    status = (TransactionStatus.UNDER_REVIEW, result.status)
    changes = {
        "transaction_decision": (None, decision.resolution.transaction_decision),
        "transaction_status": status,
    }
    # No other request can have resolved the alert, because that requires the review decision that
    # is applied here.
    alert = await resolve(tx, actor, decision.alert_id, decision.resolution, changes)
    await _transaction_trail.record(
        tx,
        actor,
        ids.encode(ids.TRANSACTION, result.transaction_id),
        result.status,
        reason=decision.audit.reason,
        changes={"status": status},
    )
    return msgspec.msgpack.encode(alert)


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
