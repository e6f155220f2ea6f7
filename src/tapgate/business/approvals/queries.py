"""SQL queries for approvals and request sums."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from tapgate.auth.owners import APPROVALS, OwnerView, limit_to_owner
from tapgate.auth.principals import Principal
from tapgate.business.approval_rules.model import Rule
from tapgate.business.approval_rules.people import Person
from tapgate.business.approval_rules.queries import find_admin
from tapgate.business.approvals.model import SUM_PERIOD, Approval, Decision
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code, require_found
from tapgate_client.schemas.admin import AdminRole
from tapgate_client.schemas.approvals import ApprovalFilters, ApprovalStatus

_SELECT: Final = """
    SELECT a.id, a.operation, a.operations, a.summary, a.reason, a.changes, a.amount, a.resource_id,
           a.maker_id, maker.name AS maker_name, a.maker_person, a.other_makers,
           coalesce(a.counted_for, a.maker_person) AS counted_for, a.fingerprint, a.executed_by,
           coalesce(a.result_for, CASE WHEN a.operation <> 'admin_users' THEN a.maker_id ELSE (
               SELECT d.admin_id FROM approval_decisions d
               WHERE d.approval_id = a.id AND d.decision = 'approve'
               ORDER BY d.decided_at DESC LIMIT 1) END) AS result_for,
           a.roles, a.required_approvers, a.status, a.code, a.result,
           a.sealed_result IS NOT NULL AS has_secrets, a.attempts,
           a.created_at, a.expires_at, a.updated_at
    FROM approvals a JOIN admins maker ON maker.id = a.maker_id"""


class Maker(NamedTuple):
    """The admin who makes a request, and others who hold the same API key."""

    admin: Person
    others: list[str]
    #: Whose sums include the request: the person's, or the owner's for its users and API keys.
    #: Otherwise a manager could split an amount across users that the manager creates.
    counted_for: str
    #: Whether the API key was created on the command line.
    has_unknown_holder: bool


async def replace_rules(tx: Transaction, rules: Sequence[Rule]) -> None:
    await tx.execute("DELETE FROM approval_rules")
    await tx.executemany(
        """INSERT INTO approval_rules (id, operation, above, roles, approvers, expires_in)
           VALUES ($1, $2, $3, $4, $5, $6)""",
        [
            (tx.new_id(), rule.operation, rule.above, rule.roles, rule.approvers, rule.expires_in)
            for rule in rules
        ],
    )


async def lock_maker(tx: Transaction, principal: Principal) -> Maker:
    """Return a request's maker, and lock the sums that include the request.

    An API key acts for the admin who received its current secret: who created it, or rotated it
    last.
    """
    others: list[str] = []
    admin_id, has_unknown_holder = principal.admin_id, False
    if admin_id is None:
        key = require_found(
            await tx.fetchrow(
                "SELECT created_by, rotated_by, has_unknown_holder FROM api_keys WHERE id = $1",
                principal.key_id,
            ),
            Code.UNAUTHORIZED,
        )
        holder_ids: list[int] = [key["created_by"], *key["rotated_by"]]
        admin_id = holder_ids.pop()
        others = [(await find_admin(tx, holder_id)).person for holder_id in holder_ids]
        has_unknown_holder = key["has_unknown_holder"]
    admin = await find_admin(tx, admin_id)
    counted_for = admin.person if principal.owner is None else principal.owner.public_id
    await tx.execute(
        "SELECT pg_advisory_xact_lock(hashtextextended('approvals ' || $1, 0))", counted_for
    )
    return Maker(admin, others, counted_for, has_unknown_holder)


async def sum_amounts(tx: Transaction, counted_for: str, operation: str) -> int:
    """Return the sum of a person's or an owner's executed and pending requests in 24 hours.

    Requests that wait for approval or execution count regardless of their age.
    """
    now = tx.now()
    total: int = await tx.fetchval(
        """SELECT (SELECT coalesce(sum(amount), 0) FROM guarded_calls
                   WHERE person = $1 AND $2 = ANY (operations) AND created_at > $3)
                + (SELECT coalesce(sum(amount), 0) FROM approvals
                   WHERE coalesce(counted_for, maker_person) = $1 AND $2 = ANY (operations)
                     AND (status = 'approved' OR status = 'pending' AND expires_at > $4
                          OR status = 'executed' AND updated_at > $3))""",
        counted_for,
        operation,
        now - SUM_PERIOD,
        now,
    )
    return int(total)


class CountedCall(NamedTuple):
    id: int
    amount: int


async def renew_call(
    tx: Transaction, counted_for: str, key: str, fingerprint: bytes
) -> CountedCall | None:
    """Lock and return the row that already counts this request, or return None.

    The first of several requests with one key may fail while another one succeeds. The amount then
    counts from the last one, which may move the money.
    """
    row = await tx.fetchrow(
        """UPDATE guarded_calls SET created_at = $4
           WHERE person = $1 AND request_key = $2 AND fingerprint = $3 RETURNING id, amount""",
        counted_for,
        key,
        fingerprint,
        tx.now(),
    )
    return None if row is None else CountedCall(*row)


async def join_call(tx: Transaction, call_id: int, amount: int) -> None:
    """Count another request with the key, and the larger amount."""
    await tx.execute(
        """UPDATE guarded_calls SET requests = requests + 1, amount = greatest(amount, $2)
           WHERE id = $1""",
        call_id,
        amount,
    )


async def leave_call(database: Database, call_id: int) -> None:
    """Remove a failed request from its row, and the row when all its requests have failed."""
    await database.execute(
        "UPDATE guarded_calls SET requests = requests - 1 WHERE id = $1", call_id
    )
    await database.execute("DELETE FROM guarded_calls WHERE id = $1 AND requests <= 0", call_id)


async def find_by_key(tx: Transaction, maker_id: int, key: str) -> Approval | None:
    row = await tx.fetchrow(
        f"{_SELECT} WHERE a.maker_id = $1 AND a.request_key = $2", maker_id, key
    )
    return None if row is None else Approval(**row)


async def get(reader: Database | Transaction, approval_id: int, *, lock: bool = False) -> Approval:
    suffix = "FOR UPDATE OF a" if lock else ""
    row = await reader.fetchrow(f"{_SELECT} WHERE a.id = $1 {suffix}", approval_id)
    return Approval(**require_found(row, Code.APPROVAL_NOT_FOUND))


async def lock_all_pending(tx: Transaction) -> list[Approval]:
    rows = await tx.fetch(f"{_SELECT} WHERE a.status = 'pending' ORDER BY a.id FOR UPDATE OF a")
    return [Approval(**row) for row in rows]


async def set_requirement(
    tx: Transaction, approval_id: int, roles: Sequence[str], approvers: int
) -> None:
    await tx.execute(
        "UPDATE approvals SET roles = $2, required_approvers = $3 WHERE id = $1",
        approval_id,
        roles,
        approvers,
    )


def can_see(principal: Principal, approval: Approval) -> bool:
    """Return whether an admin made the request, may approve it or is a system_admin."""
    return (
        principal.role == AdminRole.SYSTEM_ADMIN
        or principal.admin_id == approval.maker_id
        or principal.role in approval.roles
    )


def require_visible(principal: Principal, approval: Approval) -> None:
    if not can_see(principal, approval):
        raise ApiError(Code.APPROVAL_NOT_FOUND)


async def list_page(
    database: Database,
    filters: ApprovalFilters,
    principal: Principal,
    now: datetime,
    view: OwnerView | None,
) -> list[Approval]:
    """Return a page of the approvals that an admin can see, newest first."""
    conditions = PageConditions(filters, "a.id")
    limit_to_owner(conditions, view, APPROVALS)
    if filters.status in (ApprovalStatus.PENDING, ApprovalStatus.EXPIRED):
        # A pending approval expires even if this is not stored yet.
        expired = f"(a.status = 'expired' OR a.expires_at <= {conditions.bind(now)})"
        conditions.add("a.status IN ('pending', 'expired')")
        conditions.add(expired if filters.status == ApprovalStatus.EXPIRED else f"NOT {expired}")
    else:
        conditions.where_word("a.status", filters.status)
    conditions.where_word("a.operation", filters.operation)
    conditions.where_id("a.maker_id", ids.ADMIN, filters.maker)
    conditions.where("a.resource_id = {}", filters.resource_id)
    if principal.role != AdminRole.SYSTEM_ADMIN:
        maker, role = conditions.bind(principal.admin_id), conditions.bind(principal.role)
        conditions.add(f"(a.maker_id = {maker} OR {role} = ANY (a.roles))")
    return [Approval(**row) for row in await conditions.fetch(database, _SELECT)]


async def load_decisions(
    reader: Database | Transaction, approval_ids: Collection[int]
) -> dict[int, list[Decision]]:
    """Return the decisions on approvals, oldest first, by approval ID."""
    rows = await reader.fetch(
        """SELECT approval_id, admin_id, admins.name AS admin_name, person, decision, reason,
                  decided_at, role, admins.status = 'active' AS is_active
           FROM approval_decisions JOIN admins ON admins.id = admin_id
           WHERE approval_id = ANY ($1::bigint[]) ORDER BY decided_at, admin_id""",
        list(approval_ids),
    )
    decisions = defaultdict[int, list[Decision]](list)
    for row in rows:
        values: dict[str, Any] = dict(row)
        decisions[values.pop("approval_id")].append(Decision(**values))
    return decisions


async def change_status(
    tx: Transaction, approval_id: int, old: str, new: str, **columns: object
) -> bool:
    """Change the status if it is still `old`, and return whether it was."""
    values: list[object] = [approval_id, old, new, tx.now()]
    assignments = ["status = $3", "updated_at = $4"]
    for name, value in columns.items():
        values.append(value)
        assignments.append(f"{name} = ${len(values)}")
    changed = await tx.fetchval(
        f"""UPDATE approvals SET {", ".join(assignments)} WHERE id = $1 AND status = $2
            RETURNING true""",
        *values,
    )
    return changed is not None


async def cancel_open(tx: Transaction) -> list[int]:
    """Cancel requests that are pending, or approved and not executed; return their IDs."""
    rows = await tx.fetch(
        """UPDATE approvals SET status = 'cancelled', next_attempt_at = NULL, updated_at = $1
           WHERE status IN ('pending', 'approved') RETURNING id""",
        tx.now(),
    )
    return [row["id"] for row in rows]


async def expire(tx: Transaction) -> list[int]:
    """Expire pending approvals whose time is over, and return their IDs."""
    rows = await tx.fetch(
        """UPDATE approvals SET status = 'expired', updated_at = $1
           WHERE id = ANY (ARRAY(
               SELECT id FROM approvals WHERE status = 'pending' AND expires_at <= $1
               ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED))
           RETURNING id""",
        tx.now(),
    )
    return [row["id"] for row in rows]


async def lease_approved(database: Database, now: datetime) -> list[int]:
    """Lease approved requests that no process has executed in time, and return their IDs.

    The time until the next attempt doubles with each attempt, up to 16 minutes.
    """
    rows = await database.fetch(
        """UPDATE approvals SET attempts = attempts + 1,
               next_attempt_at = $1::timestamptz
                   + interval '30 seconds' * power(2, least(attempts, 5))
           WHERE id = ANY (ARRAY(
               SELECT id FROM approvals WHERE status = 'approved' AND next_attempt_at <= $1
               ORDER BY id LIMIT 20 FOR UPDATE SKIP LOCKED))
           RETURNING id""",
        now,
    )
    return [row["id"] for row in rows]


async def get_sealed_request(reader: Database | Transaction, approval_id: int) -> bytes:
    sealed: bytes = await reader.fetchval(
        "SELECT sealed_request FROM approvals WHERE id = $1", approval_id
    )
    return sealed


async def take_sealed_result(tx: Transaction, approval_id: int) -> bytes | None:
    """Remove and return the result with secrets, or return None if it was taken before."""
    sealed: bytes | None = await tx.fetchval(
        """WITH found AS (SELECT id, sealed_result FROM approvals WHERE id = $1 FOR UPDATE)
           UPDATE approvals SET sealed_result = NULL FROM found WHERE approvals.id = found.id
           RETURNING found.sealed_result""",
        approval_id,
    )
    return sealed


async def save_receipt(tx: Transaction, approval_id: int, receipt: dict[str, Any]) -> None:
    """Complete an executed money request's result."""
    await tx.execute(
        "UPDATE approvals SET result = $2 WHERE id = $1 AND status = 'executed'",
        approval_id,
        receipt,
    )
