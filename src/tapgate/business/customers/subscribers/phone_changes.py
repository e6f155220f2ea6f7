"""Phone number changes: who made them, and who objects.

For 24 hours, every replaced number may object to the change. Whoever made or approved a disputed
change cannot unblock or close the subscriber, or change the number again, until someone else has
unblocked the subscriber.
"""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from tapgate.auth.actors import Actor
from tapgate.business.approval_rules.same_person import may_be_same_person
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code

VETO_PERIOD: Final = timedelta(hours=24)


class PhoneChange(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    subscriber_id: int
    old_number: str
    new_number: str
    makers: list[str]
    changed_at: datetime
    vetoed_at: datetime | None


async def record(
    tx: Transaction, actor: Actor, subscriber_id: int, old_number: str, new_number: str
) -> None:
    await tx.execute(
        """INSERT INTO phone_changes (id, subscriber_id, old_number, new_number, makers, changed_at)
           VALUES ($1, $2, $3, $4, $5, $6)""",
        tx.new_id(),
        subscriber_id,
        old_number,
        new_number,
        await _list_people(tx, actor),
        tx.now(),
    )


async def find_disputable(
    tx: Transaction, subscriber_id: int, phone_number: str
) -> list[PhoneChange]:
    """Return the change that replaced a number in the last 24 hours, and all later changes.

    The list is empty if the number may not object.
    """
    rows = await tx.fetch(
        """SELECT id, subscriber_id, old_number, new_number, makers, changed_at, vetoed_at
           FROM phone_changes
           WHERE subscriber_id = $1 AND changed_at > $3 AND id >= (
               SELECT min(id) FROM phone_changes
               WHERE subscriber_id = $1 AND old_number = $2 AND changed_at > $3)
           ORDER BY id""",
        subscriber_id,
        phone_number,
        tx.now() - VETO_PERIOD,
    )
    return [PhoneChange(**row) for row in rows]


async def list_replaced(database: Database, phone_number: str, now: datetime) -> list[int]:
    """Return the subscribers whose number this was until at most 24 hours ago."""
    rows = await database.fetch(
        """SELECT DISTINCT subscriber_id FROM phone_changes
           WHERE old_number = $1 AND changed_at > $2""",
        phone_number,
        now - VETO_PERIOD,
    )
    return [row["subscriber_id"] for row in rows]


async def mark_vetoed(tx: Transaction, changes: list[PhoneChange]) -> None:
    await tx.execute(
        "UPDATE phone_changes SET vetoed_at = $2, cleared_at = NULL WHERE id = ANY ($1::bigint[])",
        [change.id for change in changes],
        tx.now(),
    )


async def clear_vetoes(tx: Transaction, subscriber_id: int) -> None:
    """Lift the restrictions, because someone else has unblocked the subscriber."""
    await tx.execute(
        """UPDATE phone_changes SET cleared_at = $2
           WHERE subscriber_id = $1 AND vetoed_at IS NOT NULL AND cleared_at IS NULL""",
        subscriber_id,
        tx.now(),
    )


async def require_uninvolved(tx: Transaction, actor: Actor, subscriber_id: int) -> None:
    """Raise 403 for people who made or approved a disputed change of the phone number."""
    makers = await tx.fetchval(
        """SELECT array_agg(maker) FROM phone_changes, unnest(makers) AS maker
           WHERE subscriber_id = $1 AND vetoed_at IS NOT NULL AND cleared_at IS NULL""",
        subscriber_id,
    )
    if makers and await may_be_same_person(tx, await _list_people(tx, actor), makers):
        raise ApiError(
            Code.FORBIDDEN,
            "The customer disputes a phone number change that you made or approved. Someone else"
            " must unblock the wallet first.",
            details={"required": ["another admin"]},
        )


async def load_maker_names(tx: Transaction, makers: list[str]) -> list[str]:
    """Return the names of admins and API keys, with their IDs."""
    named = []
    for maker in makers:
        table, prefix = (
            ("admins", ids.ADMIN) if maker.startswith(ids.ADMIN) else ("api_keys", ids.KEY)
        )
        name = await tx.fetchval(
            f"SELECT name FROM {table} WHERE id = $1", ids.decode(prefix, maker)
        )
        named.append(maker if name is None else f"{name} ({maker})")
    return named


async def _list_people(tx: Transaction, actor: Actor) -> list[str]:
    """Return the actor and, for an approved request, whoever approved it.

    The request ID of an approved request is the ID of its approval.
    """
    approval_id = ids.decode(ids.APPROVAL, actor.request_id or "")
    if approval_id is None:
        return [actor.id]
    rows = await tx.fetch(
        """SELECT d.admin_id FROM approval_decisions d JOIN approvals a ON a.id = d.approval_id
           WHERE a.id = $1 AND a.status = 'approved' AND d.decision = 'approve'
           ORDER BY d.admin_id""",
        approval_id,
    )
    return [actor.id, *(ids.encode(ids.ADMIN, row["admin_id"]) for row in rows)]
