"""Audit entries about admins."""

from tapgate.auth.actors import Actor
from tapgate.events.audit.trail import AuditTrail, Changes
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids

_trail = AuditTrail("admin")


async def record(
    tx: Transaction,
    actor: Actor,
    admin_id: int,
    action: str,
    *,
    reason: str | None = None,
    changes: Changes | None = None,
) -> None:
    public_id = ids.encode(ids.ADMIN, admin_id)
    await _trail.record(tx, actor, public_id, action, reason=reason, changes=changes)
