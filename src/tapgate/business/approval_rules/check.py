"""The check that enough people can approve every request that the rules hold.

Otherwise an operation, or a change to the rules, would wait for an approval that no admin can give.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from tapgate.business.approval_rules import queries
from tapgate.business.approval_rules.model import Rule
from tapgate.business.approval_rules.people import ApproverCount, RolesByOperation, count_approvers
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code


async def load_approver_counts(
    reader: Database | Transaction,
    makers: RolesByOperation,
    rules: Sequence[Rule] | None = None,
    *,
    without: int | None = None,
) -> list[ApproverCount]:
    """Return how many people could approve under each rule, by default the rules in force.

    `without` is an admin's ID to leave out, as if the admin were disabled.
    """
    if rules is None:
        rules = await queries.list_rules_in_force(reader)
    if not rules:
        return []
    admins = await queries.list_active_admins(reader)
    remaining = [admin for admin in admins if admin.admin_id != without]
    return count_approvers(rules, remaining, await queries.load_linked_people(reader), makers)


async def require_enough_approvers(
    reader: Database | Transaction, makers: RolesByOperation, rules: Sequence[Rule]
) -> None:
    """Raise 422 if active admins could not satisfy one of the rules."""
    missing = [
        count for count in await load_approver_counts(reader, makers, rules) if count.missing
    ]
    if missing:
        fields = {
            f"data[{rules.index(count.rule)}].roles": _describe_missing(count)
            for count in missing
            if count.rule in rules
        }
        raise _build_error(missing, fields)


@asynccontextmanager
async def keep_enough_approvers(tx: Transaction, makers: RolesByOperation) -> AsyncIterator[None]:
    """Raise 422 if the changes made inside leave too few people to approve under a rule.

    Concurrent changes wait, so that two of them cannot each remove the last but one approver.
    """
    await queries.lock(tx)
    before = {count.rule.id: count for count in await load_approver_counts(tx, makers)}
    yield
    missing = [
        count
        for count in await load_approver_counts(tx, makers)
        if count.missing > before[count.rule.id].missing
    ]
    if missing:
        raise _build_error(missing, {})


def _build_error(missing: Sequence[ApproverCount], fields: dict[str, str]) -> ApiError:
    rule, maker = missing[0].rule, missing[0].maker
    assert maker is not None
    roles = " or ".join(rule.roles)
    return ApiError(
        Code.VALIDATION_FAILED,
        f"Approval rule {rule.operation} needs more active people with the role {roles}: "
        f"{missing[0].available} of {rule.approvers} can approve requests of {maker.name}. "
        "Administrators count once they have set a password. Add administrators, confirm accounts "
        "or change the rule first.",
        details={
            **({"fields": fields} if fields else {}),
            "missing": [
                {
                    "operation": count.rule.operation,
                    "roles": count.rule.roles,
                    "approvers": count.rule.approvers,
                    "available": count.available,
                    "maker": None if count.maker is None else count.maker.name,
                }
                for count in missing
            ],
        },
    )


def _describe_missing(count: ApproverCount) -> str:
    assert count.maker is not None
    roles, needed = " or ".join(count.rule.roles), count.rule.approvers
    return (
        f"needs more active people with the role {roles}: {count.available} of {needed} can "
        f"approve requests of {count.maker.name}"
    )
