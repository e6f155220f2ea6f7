"""Admin access to restricted subscribers, granted with a code sent to the subscriber's phone."""

from datetime import datetime, timedelta

from tapgate.auth.actors import Actor
from tapgate.business.customers.subscribers import queries
from tapgate.core.message_templates import Notice
from tapgate.core.vault import Vault
from tapgate.events.audit.trail import AuditTrail
from tapgate.events.notifications import codes
from tapgate.events.notifications.account_notices import send_notice
from tapgate.ledger.one_time_codes.codes import CodeRequest
from tapgate.runtime.store.transaction import Transaction

ACCESS_LIFETIME = timedelta(minutes=15)

_trail = AuditTrail("subscriber")


async def request_access(
    tx: Transaction, actor: Actor, subscriber_id: int, *, vault: Vault
) -> None:
    subscriber = await queries.get(tx, subscriber_id)
    code_request = _build_code_request(actor, subscriber_id)
    await codes.send(
        tx, code_request, subscriber.phone_number, language=subscriber.language, vault=vault
    )
    await _trail.record(tx, actor, subscriber.public_id, "restricted_access_requested")


async def grant_access(
    tx: Transaction, actor: Actor, subscriber_id: int, code: str, *, vault: Vault
) -> datetime:
    """Redeem the code, grant this admin access, and return the time at which it expires."""
    assert actor.principal is not None, "the actor is an admin"
    subscriber = await queries.get(tx, subscriber_id)
    action = "restricted_access_granted"
    await codes.redeem(
        tx,
        actor,
        _build_code_request(actor, subscriber_id),
        subscriber.phone_number,
        code,
        trail=_trail,
        resource_id=subscriber.public_id,
        action=action,
        vault=vault,
    )
    expires_at = tx.now() + ACCESS_LIFETIME
    await tx.execute(
        """INSERT INTO restricted_access (admin_id, subscriber_id, expires_at)
           VALUES ($1, $2, $3)
           ON CONFLICT (admin_id, subscriber_id) DO UPDATE SET expires_at = $3""",
        actor.principal.admin_id,
        subscriber_id,
        expires_at,
    )
    await _trail.record(tx, actor, subscriber.public_id, action)
    await send_notice(tx, subscriber.notice_recipient, Notice.RECORD_OPENED)
    return expires_at


def _build_code_request(actor: Actor, subscriber_id: int) -> CodeRequest:
    return CodeRequest("restricted_access", subscriber_id, requester=actor.id)
