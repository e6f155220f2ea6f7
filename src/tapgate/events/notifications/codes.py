"""One-time codes sent to a person's phone, and their redemption."""

from tapgate.auth.actors import Actor
from tapgate.core.vault import Vault
from tapgate.events.audit.trail import AuditTrail
from tapgate.events.notifications.notification_messages import enqueue_message
from tapgate.ledger.one_time_codes import codes
from tapgate.ledger.one_time_codes.codes import CodeRequest
from tapgate.runtime.store.database import RaiseAfterCommit
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.schemas.audit import AuditResult

ONE_TIME_CODE_TEMPLATE = "one_time_code"


async def send(
    tx: Transaction,
    code_request: CodeRequest,
    phone_number: str,
    *,
    language: str = "en",
    vault: Vault,
) -> None:
    code = await codes.issue(tx, vault, code_request, phone_number)
    await enqueue_message(
        tx,
        vault,
        to=phone_number,
        template=ONE_TIME_CODE_TEMPLATE,
        parameters=[code],
        language=language,
        expires_at=tx.now() + codes.CODE_LIFETIME,
    )


async def redeem(
    tx: Transaction,
    actor: Actor,
    code_request: CodeRequest,
    phone_number: str,
    code: str,
    *,
    trail: AuditTrail,
    resource_id: str,
    action: str,
    vault: Vault,
) -> None:
    """Consume a code for an action. An invalid code is counted, audited and raised."""
    error = await codes.redeem(tx, vault, code_request, phone_number, code)
    if error is not None:
        await trail.record(
            tx, actor, resource_id, action, result=AuditResult.FAILURE, reason=error.code
        )
        raise RaiseAfterCommit(error)
