"""Operations on approval rules and approvals."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import msgspec

from tapgate.auth.actors import SYSTEM_ACTOR, Actor
from tapgate.auth.disclosure import find_hidden_subjects
from tapgate.business.approval_rules.check import require_enough_approvers
from tapgate.business.approval_rules.model import Rule, build_rule_change_requirement
from tapgate.business.approval_rules.people import LinkedPeople, Person, RolesByOperation
from tapgate.business.approval_rules.queries import (
    delete_suspension,
    find_admin,
    get_suspension,
    insert_suspension,
    list_active_admins,
    list_rules,
    list_rules_in_force,
    load_linked_people,
    lock,
)
from tapgate.business.approvals import model, queries
from tapgate.business.approvals.model import Approval, Decision
from tapgate.events.audit.trail import AuditTrail
from tapgate.events.webhooks.webhook_events import publish
from tapgate.http.api.guards import Requirement
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import clock, ids
from tapgate_client.errors import ApiError, Code, unavailable
from tapgate_client.schemas.admin import AdminRole, Scope
from tapgate_client.schemas.approvals import (
    ApprovalRecord,
    ApprovalRule,
    ApprovalStatus,
    ApprovalSuspension,
    ApprovalVerdict,
    Operation,
)
from tapgate_client.schemas.audit import AuditResult

#: A worker executes an approved request if the process that approved it has not done so by then.
EXECUTION_PERIOD: Final = timedelta(seconds=30)

#: Operations that an API key with a scope can request, or that creating it is.
_OPERATIONS_BY_SCOPE: Final = {
    Scope.PAYMENTS_WRITE: (Operation.API_KEYS, Operation.WALLET_TRANSFER),
    Scope.SUBSCRIBERS_WRITE: (Operation.SUBSCRIBER_PHONE,),
}

_trail = AuditTrail("approval")
_rules_trail = AuditTrail("approval_rules")


async def replace_rules(
    tx: Transaction,
    actor: Actor,
    rules: Sequence[Rule],
    *,
    makers: RolesByOperation,
    currency: str,
    is_approved: bool,
) -> list[ApprovalRule]:
    """Replace all rules. Once rules exist, a change requires an approval.

    `makers` are the roles that may request each operation. Active admins must be able to satisfy
    the new rules. Pending requests then need the approvals that the new rules require, but not
    fewer than before.
    """
    await lock(tx)
    before = [model.to_rule_record(rule, currency) for rule in await list_rules(tx)]
    if not is_approved and await list_rules_in_force(tx):
        raise unavailable("The rules were changed at the same time. Try again.")
    await require_enough_approvers(tx, makers, rules)
    await queries.replace_rules(tx, rules)
    new_rules = await list_rules(tx)
    await _apply_to_pending(tx, new_rules)
    after = [model.to_rule_record(rule, currency) for rule in new_rules]
    await _rules_trail.record(tx, actor, None, "updated", changes={"data": (before, after)})
    return after


async def find_requirement(
    tx: Transaction,
    rules: Sequence[Rule],
    counted_for: str,
    operations: Sequence[str],
    *,
    new_amount: int | None,
) -> Requirement | None:
    """Return the strictest approval requirement that applies to a request, or None.

    `new_amount` is added to the sums of the person or owner. It is None for a request without an
    amount. If such a request makes several changes that need approvals of different roles, none of
    these roles may approve all changes: raise 422.
    """
    found = await _list_requirements(tx, rules, counted_for, operations, new_amount=new_amount)
    if new_amount is None and len({frozenset(each.roles) for each in found}) > 1:
        raise ApiError(
            Code.VALIDATION_FAILED,
            "Different roles approve these changes. Send each change in a request of its own.",
            details={"operations": [each.operation for each in found]},
        )
    return _select_strictest(found)


def _select_strictest(requirements: Sequence[Requirement]) -> Requirement | None:
    return max(requirements, key=lambda requirement: requirement.approvers, default=None)


async def _list_requirements(
    tx: Transaction,
    rules: Sequence[Rule],
    counted_for: str,
    operations: Sequence[str],
    *,
    new_amount: int | None,
) -> list[Requirement]:
    """Return one requirement for each operation whose rules hold the request."""
    found = []
    for operation in operations:
        applicable = [rule for rule in rules if rule.operation == operation]
        total = None
        if applicable and new_amount is not None:
            total = await queries.sum_amounts(tx, counted_for, operation) + new_amount
        rule = model.select_rule(applicable, total)
        if rule is not None:
            found.append(msgspec.structs.replace(rule.requirement, operation=operation))
    return found


async def _apply_to_pending(tx: Transaction, rules: Sequence[Rule]) -> None:
    for approval in await queries.lock_all_pending(tx):
        requirement = None
        if approval.operation == Operation.APPROVAL_RULES:
            requirement = build_rule_change_requirement(rules) if rules else None
        else:
            found = await _list_requirements(
                tx,
                rules,
                approval.counted_for,
                approval.operations,
                new_amount=None if approval.amount is None else 0,  # the sums include it
            )
            requirement = _select_strictest(found)
            if requirement is not None and approval.amount is None:
                # Roles that may approve all changes, or, if there are none, the same as before.
                common = set.intersection(*(set(each.roles) for each in found))
                roles = [role for role in requirement.roles if role in common] or approval.roles
                requirement = msgspec.structs.replace(requirement, roles=roles)
        if requirement is not None:
            approvers = max(requirement.approvers, approval.required_approvers)
            await queries.set_requirement(tx, approval.id, requirement.roles, approvers)


async def require_unguarded_key(tx: Transaction, scopes: Sequence[str]) -> None:
    """Raise 403 if approval rules hold requests with an API key that has these scopes.

    The command line has no maker, so it cannot make a request that waits for approval, and the key
    would belong to no known person.
    """
    guarded = {rule.operation for rule in await list_rules_in_force(tx)}
    for scope, guarded_operations in _OPERATIONS_BY_SCOPE.items():
        if scope in scopes and guarded.intersection(guarded_operations):
            raise _build_forbidden_error(
                f"API keys with {scope} need an approval, or their requests do. Create the key in "
                "the console.",
                "approval",
            )


async def require_unguarded_reset(tx: Transaction, admin_id: int) -> None:
    """Raise 403 if other admins can reset an admin's password under the approval rules.

    If they cannot, because too few of them are active, the command line is the only way left.
    """
    rule = model.select_rule(
        [rule for rule in await list_rules_in_force(tx) if rule.operation == Operation.ADMIN_USERS],
        None,
    )
    if rule is None:
        return
    target, admins = await find_admin(tx, admin_id), await list_active_admins(tx)
    linked = await load_linked_people(tx)
    others = [admin for admin in admins if admin.person != target.person and admin.can_sign_in]
    for maker in others:
        approvers = {
            admin.person
            for admin in others
            if admin.role in rule.roles and not linked.may_be_same(admin.person, maker.person)
        }
        if maker.role == AdminRole.SYSTEM_ADMIN and linked.count(approvers) >= rule.approvers:
            raise _build_forbidden_error(
                "Approval rules hold this. Other admins can request and approve it in the console.",
                "approval",
            )


async def suspend(tx: Transaction, actor: Actor, reason: str) -> None:
    """Suspend the approval rules until they are resumed: no request is held."""
    await lock(tx)
    if await get_suspension(tx) is not None:
        raise ApiError(Code.ALREADY_SUSPENDED, "Approvals are already suspended.")
    suspension = ApprovalSuspension(
        reason=reason, suspended_by=str(actor.id), suspended_at=clock.format_rfc3339(tx.now())
    )
    await insert_suspension(tx, suspension)
    await _rules_trail.record(tx, actor, None, "suspended", reason=reason)


async def resume(tx: Transaction, actor: Actor, makers: RolesByOperation) -> None:
    """End the suspension, unless active admins could not satisfy the rules."""
    await lock(tx)
    if await get_suspension(tx) is None:
        raise ApiError(Code.NOT_SUSPENDED, "Approvals are not suspended.")
    await require_enough_approvers(tx, makers, await list_rules(tx))
    await delete_suspension(tx)
    await _rules_trail.record(tx, actor, None, "resumed")


async def record_creation(
    tx: Transaction, actor: Actor, approval: Approval, *, currency: str
) -> None:
    """Write the audit entry and the event for a new approval."""
    record = await _publish(tx, "approval.created", approval, [], currency=currency)
    changes = {
        name: (None, value)
        for name in ("operation", "summary", "amount", "resource_id")
        if (value := getattr(record, name)) is not None
    }
    await _trail.record(
        tx, actor, approval.public_id, "created", changes=changes, reason=record.reason
    )


async def approve(tx: Transaction, actor: Actor, approval_id: int) -> bool:
    """Approve a request, and return whether it can be executed now.

    Approvals by admins who have since been disabled or lost their role do not count. They count
    again when the admin is enabled, so a repeated approval can be the last one that was missing.
    """
    approval = await _lock_pending(tx, actor, approval_id)
    decisions, linked = await _load_decisions(tx, approval_id), await load_linked_people(tx)
    approver = await _require_approver(tx, actor, approval, decisions)
    if approval.is_made_by(approver.person, linked):
        raise _build_forbidden_error(
            "You and the maker may be one person: one of you asked for the other's account, or has "
            "seen its invitation or reset link. A third admin must confirm the account first.",
            "another admin",
        )
    if await find_hidden_subjects(tx, actor.principal, tx.now(), model.list_subjects(approval)):
        raise ApiError(
            Code.OTP_REQUIRED,
            "The values are hidden, because the request concerns a restricted subscriber. Verify "
            "an access code first.",
        )
    if not any(decision.admin_id == approver.admin_id for decision in decisions):
        await _add_decision(tx, approval_id, approver, ApprovalVerdict.APPROVE, None)
        await _trail.record(tx, actor, approval.public_id, "approved")
    if not approval.has_enough_approvals(await _load_decisions(tx, approval_id), linked):
        return False
    await queries.change_status(
        tx,
        approval_id,
        ApprovalStatus.PENDING,
        ApprovalStatus.APPROVED,
        next_attempt_at=tx.now() + EXECUTION_PERIOD,
        executed_by=approver.admin_id,
    )
    return True


async def reject(
    tx: Transaction, actor: Actor, approval_id: int, reason: str, *, currency: str
) -> None:
    approval = await _lock_pending(tx, actor, approval_id)
    decisions = await _load_decisions(tx, approval_id)
    approver = await _require_approver(tx, actor, approval, decisions)
    await _add_decision(tx, approval_id, approver, ApprovalVerdict.REJECT, reason)
    await queries.change_status(tx, approval_id, ApprovalStatus.PENDING, ApprovalStatus.REJECTED)
    await _trail.record(tx, actor, approval.public_id, "rejected", reason=reason)
    await _publish_stored(tx, "approval.rejected", approval_id, currency)


async def cancel(tx: Transaction, actor: Actor, approval_id: int) -> None:
    """Cancel a request. Only its maker can."""
    approval = await _lock_pending(tx, actor, approval_id)
    if actor.id != ids.encode(ids.ADMIN, approval.maker_id):
        raise _build_forbidden_error("Only the admin who made the request can cancel it.", "maker")
    await queries.change_status(tx, approval_id, ApprovalStatus.PENDING, ApprovalStatus.CANCELLED)
    await _trail.record(tx, actor, approval.public_id, "cancelled")


async def cancel_open(tx: Transaction, actor: Actor, *, reason: str) -> int:
    """Cancel all requests that are pending, or approved and not executed; return their number."""
    approval_ids = await queries.cancel_open(tx)
    for approval_id in approval_ids:
        public_id = ids.encode(ids.APPROVAL, approval_id)
        await _trail.record(tx, actor, public_id, "cancelled", reason=reason)
    return len(approval_ids)


async def expire(tx: Transaction) -> None:
    """Store that pending approvals have expired."""
    for approval_id in await queries.expire(tx):
        public_id = ids.encode(ids.APPROVAL, approval_id)
        await _trail.record(tx, SYSTEM_ACTOR, public_id, "expired")


async def end_execution(
    tx: Transaction,
    actor: Actor,
    approval_id: int,
    result: dict[str, Any],
    *,
    currency: str,
    sealed_result: bytes | None = None,
    result_for: int | None = None,
) -> None:
    """Store that a request was executed, in the transaction that executes it.

    `result_for` is the admin who receives the secrets in the sealed result.
    """
    is_changed = await queries.change_status(
        tx,
        approval_id,
        ApprovalStatus.APPROVED,
        ApprovalStatus.EXECUTED,
        result=result,
        sealed_result=sealed_result,
        result_for=result_for,
    )
    if not is_changed:
        raise RuntimeError("the approval is not waiting for its execution")
    await _trail.record(tx, actor, ids.encode(ids.APPROVAL, approval_id), "executed")
    await _publish_stored(tx, "approval.executed", approval_id, currency)


async def fail_execution(tx: Transaction, actor: Actor, approval_id: int, error: ApiError) -> None:
    """Store that a check failed when the request was executed, unless it has ended already."""
    is_changed = await queries.change_status(
        tx,
        approval_id,
        ApprovalStatus.APPROVED,
        ApprovalStatus.FAILED,
        code=str(error.code),
        result=error.body(),
    )
    if is_changed:
        public_id = ids.encode(ids.APPROVAL, approval_id)
        failure = AuditResult.FAILURE
        await _trail.record(tx, actor, public_id, "executed", result=failure, reason=error.code)


async def record_disclosure(tx: Transaction, actor: Actor, approval_id: int) -> None:
    """Record that the maker or the approver received the secrets in the result."""
    await _trail.record(tx, actor, ids.encode(ids.APPROVAL, approval_id), "result_disclosed")


async def _publish_stored(
    tx: Transaction, event_type: str, approval_id: int, currency: str
) -> None:
    approval = await queries.get(tx, approval_id)
    decisions = await _load_decisions(tx, approval_id)
    await _publish(tx, event_type, approval, decisions, currency=currency)


async def _publish(
    tx: Transaction,
    event_type: str,
    approval: Approval,
    decisions: Sequence[Decision],
    *,
    currency: str,
) -> ApprovalRecord:
    """Publish an event without phone numbers and data of restricted subscribers."""
    hidden = await find_hidden_subjects(tx, None, tx.now(), model.list_subjects(approval))
    masked = bool(hidden) or model.get_phone_owner(approval) is not None
    record = model.to_record(approval, decisions, currency=currency, now=tx.now(), masked=masked)
    await publish(tx, event_type, record)
    return record


async def _load_decisions(tx: Transaction, approval_id: int) -> list[Decision]:
    return (await queries.load_decisions(tx, [approval_id]))[approval_id]


async def _lock_pending(tx: Transaction, actor: Actor, approval_id: int) -> Approval:
    """Lock a pending approval that the actor can see."""
    approval = await queries.get(tx, approval_id, lock=True)
    assert actor.principal is not None
    queries.require_visible(actor.principal, approval)
    status = approval.get_status(tx.now())
    if status != ApprovalStatus.PENDING:
        raise ApiError(Code.APPROVAL_NOT_PENDING, details={"status": status})
    return approval


async def _require_approver(
    tx: Transaction, actor: Actor, approval: Approval, decisions: Sequence[Decision]
) -> Person:
    """Return the admin who decides, or raise 403 if this person may not.

    People who may be one person may reject each other's requests.
    """
    assert actor.principal is not None
    assert actor.principal.admin_id is not None
    approver = await find_admin(tx, actor.principal.admin_id, for_share=True)
    if approval.is_made_by(approver.person, LinkedPeople()):
        raise _build_forbidden_error("You can't decide on your own request.", "another admin")
    if not approver.is_active or approver.role not in approval.roles:
        raise _build_forbidden_error("Your role can't approve this request.", *approval.roles)
    if any(
        decision.person == approver.person and decision.admin_id != approver.admin_id
        for decision in decisions
    ):
        raise _build_forbidden_error("You have already decided on this request.", "another admin")
    return approver


async def _add_decision(
    tx: Transaction,
    approval_id: int,
    approver: Person,
    verdict: ApprovalVerdict,
    reason: str | None,
) -> None:
    await tx.execute(
        """INSERT INTO approval_decisions
               (approval_id, admin_id, person, decision, reason, decided_at)
           VALUES ($1, $2, $3, $4, $5, $6)
           ON CONFLICT (approval_id, admin_id) DO UPDATE
           SET decision = excluded.decision, reason = excluded.reason,
               decided_at = excluded.decided_at""",
        approval_id,
        approver.admin_id,
        approver.person,
        verdict,
        reason,
        tx.now(),
    )


def _build_forbidden_error(message: str, *required: str) -> ApiError:
    return ApiError(Code.FORBIDDEN, message, details={"required": list(required)})
