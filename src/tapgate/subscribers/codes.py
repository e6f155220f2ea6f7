"""One-time codes sent to a subscriber's phone, and their redemption."""

from tapgate import ids
from tapgate.audit.trail import AuditTrail
from tapgate.auth.actors import Actor
from tapgate.notifications.messages import enqueue_message
from tapgate.one_time_codes import codes
from tapgate.one_time_codes.codes import CodeRequest
from tapgate.schemas.audit import AuditResult
from tapgate.store.database import RaiseAfterCommit
from tapgate.store.transaction import Transaction
from tapgate.subscribers.model import Subscriber
from tapgate.vault import Vault

ONE_TIME_CODE_TEMPLATE = "one_time_code"

_trail = AuditTrail("subscriber")


async def send(
    tx: Transaction, subscriber: Subscriber, code_request: CodeRequest, *, vault: Vault
) -> None:
    code = await codes.issue(tx, vault, code_request, subscriber.phone_number)
    await enqueue_message(
        tx,
        vault,
        to=subscriber.phone_number,
        template=ONE_TIME_CODE_TEMPLATE,
        parameters=[code],
        expires_at=tx.now() + codes.CODE_LIFETIME,
    )


async def redeem(
    tx: Transaction,
    actor: Actor,
    code_request: CodeRequest,
    code: str,
    action: str,
    *,
    vault: Vault,
) -> None:
    """Consume a code for an action. An invalid code is counted, audited and raised."""
    error = await codes.redeem(tx, vault, code_request, code)
    if error is not None:
        subscriber_id = ids.encode(ids.SUBSCRIBER, code_request.subscriber_id)
        await _trail.record(
            tx, actor, subscriber_id, action, result=AuditResult.FAILURE, reason=error.code
        )
        raise RaiseAfterCommit(error)
