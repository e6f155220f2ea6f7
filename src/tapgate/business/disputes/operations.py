"""Operations on disputes: open, respond, reject, withdraw, and the end by a refund."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from tapgate.auth.actors import Actor
from tapgate.business.disputes import model, queries
from tapgate.business.disputes.model import Dispute
from tapgate.core.message_templates import TEMPLATES
from tapgate.core.public_names import hide_links
from tapgate.core.vault import Vault
from tapgate.events.audit.trail import AuditTrail
from tapgate.events.notifications.notification_messages import enqueue_message
from tapgate.events.webhooks.webhook_events import publish
from tapgate.ledger.commands import (
    AuditFacts,
    DisputeRefund,
    RejectedBeforeCommitError,
    ScopedIdempotencyKey,
)
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import money
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.disputes import DisputeStatus, NewDispute
from tapgate_client.schemas.subscribers import SubscriberLanguage

UPDATE_TEMPLATE: Final = "dispute_updated"
_MAX_SHOWN_LENGTH: Final = 300

_trail = AuditTrail("dispute")

#: Events by the status that a dispute gets.
_EVENTS: Final[Mapping[str, str]] = {
    DisputeStatus.OPEN: "dispute.created",
    DisputeStatus.ANSWERED: "dispute.answered",
    DisputeStatus.REFUNDED: "dispute.decided",
    DisputeStatus.REJECTED: "dispute.decided",
    DisputeStatus.WITHDRAWN: "dispute.decided",
}
#: What the cardholder reads about the new status.
_STATUS_TEXTS: Final[Mapping[str, Mapping[str, str]]] = {
    SubscriberLanguage.EN: {
        DisputeStatus.OPEN: "we have asked the merchant, who has 7 days to answer.",
        DisputeStatus.ANSWERED: "the merchant answered: {} We will decide.",
        DisputeStatus.REFUNDED: "decided in your favor. The money is back in your wallet.",
        DisputeStatus.REJECTED: "not accepted: {}",
        DisputeStatus.WITHDRAWN: "withdrawn.",
    },
    SubscriberLanguage.FR: {
        DisputeStatus.OPEN: "nous avons interrogé le marchand, qui a 7 jours pour répondre.",
        DisputeStatus.ANSWERED: "le marchand a répondu : {} Nous allons décider.",
        DisputeStatus.REFUNDED: "acceptée. L'argent est de retour dans votre portefeuille.",
        DisputeStatus.REJECTED: "refusée : {}",
        DisputeStatus.WITHDRAWN: "retirée.",
    },
}


async def find_replay(tx: Transaction, key: ScopedIdempotencyKey) -> Dispute | None:
    """Return the dispute that the same request opened before."""
    known = await queries.find_by_key(tx, key)
    if known is not None and known.fingerprint != key.fingerprint:
        raise ApiError(Code.DUPLICATE_REQUEST)
    return known


async def open_dispute(
    tx: Transaction, actor: Actor, body: NewDispute, transaction_id: int, key: ScopedIdempotencyKey
) -> tuple[Dispute, bool]:
    """Open a dispute; return it and whether it is new. A repeated request gets the same dispute."""
    known = await find_replay(tx, key)
    if known is not None:
        return known, False
    payment, now = await queries.get_payment(tx, transaction_id), tx.now()
    if await queries.find_by_transaction(tx, transaction_id) is not None:
        raise ApiError(Code.ALREADY_DISPUTED)
    model.require_disputable(payment, now)
    assert payment.subscriber_id is not None
    assert payment.processor_id is not None
    dispute = Dispute(
        id=tx.new_id(),
        transaction_id=payment.id,
        subscriber_id=payment.subscriber_id,
        processor_id=payment.processor_id,
        processor_name="",
        merchant_name=None,
        amount=model.choose_amount(payment, body.amount),
        currency=payment.currency,
        reason=body.reason,
        description=body.description,
        status=DisputeStatus.OPEN,
        merchant_response=None,
        decision_reason=None,
        due_at=now + model.RESPONSE_PERIOD,
        created_at=now,
        updated_at=now,
        fingerprint=key.fingerprint,
    )
    if not await queries.add(tx, dispute, key):
        # Another request disputed the payment, or used the key, at the same time.
        known = await find_replay(tx, key)
        if known is None:
            raise ApiError(Code.ALREADY_DISPUTED)
        return known, False
    dispute = await queries.get(tx, dispute.id)
    await _report(tx, actor, dispute, "created", {"status": (None, dispute.status)}, tx.vault)
    return dispute, True


async def respond(
    tx: Transaction, actor: Actor, dispute_id: int, text: str, *, processor_id: int | None
) -> Dispute:
    """Store the merchant's response. A later response replaces it until the decision."""
    before = await _lock_undecided(tx, dispute_id, processor_id)
    after = replace(before, status=DisputeStatus.ANSWERED, merchant_response=text)
    return await _save(tx, actor, before, after, "answered", tx.vault)


async def reject(tx: Transaction, actor: Actor, dispute_id: int, reason: str) -> Dispute:
    before = await _lock_undecided(tx, dispute_id)
    after = replace(before, status=DisputeStatus.REJECTED, decision_reason=reason)
    return await _save(tx, actor, before, after, "rejected", tx.vault, reason=reason)


async def withdraw(tx: Transaction, actor: Actor, dispute_id: int) -> Dispute:
    before = await _lock_undecided(tx, dispute_id)
    after = replace(before, status=DisputeStatus.WITHDRAWN)
    return await _save(tx, actor, before, after, "withdrawn", tx.vault)


async def finish_refund(
    tx: Transaction, audit: AuditFacts, refund: DisputeRefund, *, vault: Vault
) -> None:
    """End the dispute in the ledger's transaction, or reject the refund if it has ended.

    Of concurrent refunds, withdrawals and decisions, the first one gets the lock and wins.
    """
    before = await queries.get(tx, refund.id, for_update=True)
    if before.status not in model.UNDECIDED:
        raise RejectedBeforeCommitError(Code.DISPUTE_NOT_OPEN)
    await _end_as_refunded(tx, Actor.from_audit_facts(audit), before, refund, vault)


async def end_without_refund(tx: Transaction, actor: Actor, refund: DisputeRefund) -> None:
    """End a dispute whose payment was already refunded completely."""
    before = await _lock_undecided(tx, refund.id)
    await _end_as_refunded(tx, actor, before, refund, tx.vault)


async def _end_as_refunded(
    tx: Transaction, actor: Actor, before: Dispute, refund: DisputeRefund, vault: Vault
) -> None:
    after = replace(
        before,
        status=DisputeStatus.REFUNDED,
        merchant_response=refund.response or before.merchant_response,
        decision_reason=refund.decision_reason,
    )
    action = "accepted" if refund.decision_reason is None else "refunded"
    await _save(tx, actor, before, after, action, vault, reason=refund.decision_reason)


async def _lock_undecided(
    tx: Transaction, dispute_id: int, processor_id: int | None = None
) -> Dispute:
    dispute = await queries.get(tx, dispute_id, processor_id=processor_id, for_update=True)
    model.require_undecided(dispute)
    return dispute


async def _save(
    tx: Transaction,
    actor: Actor,
    before: Dispute,
    after: Dispute,
    action: str,
    vault: Vault,
    *,
    reason: str | None = None,
) -> Dispute:
    after = replace(after, updated_at=tx.now())
    await queries.save(tx, after)
    changes = {"status": (before.status, after.status)} if after.status != before.status else {}
    await _report(tx, actor, after, action, changes, vault, reason=reason)
    return after


async def _report(
    tx: Transaction,
    actor: Actor,
    dispute: Dispute,
    action: str,
    changes: Mapping[str, tuple[str | None, str]],
    vault: Vault,
    *,
    reason: str | None = None,
) -> None:
    """Write the audit entry, the event and the message to the cardholder."""
    await _trail.record(tx, actor, dispute.public_id, action, changes=dict(changes), reason=reason)
    await publish(tx, _EVENTS[dispute.status], model.to_record(dispute, tx.now()))
    phone_number, language = await queries.get_recipient(tx, dispute.subscriber_id)
    shown = dispute.decision_reason if dispute.decision_reason else dispute.merchant_response
    await enqueue_message(
        tx,
        vault,
        to=phone_number,
        template=UPDATE_TEMPLATE,
        parameters=[
            money.format_money(dispute.amount, dispute.currency, language),
            dispute.merchant,
            _STATUS_TEXTS[language][dispute.status].format(
                hide_links(shown or "")[:_MAX_SHOWN_LENGTH]
            ),
        ],
        language=language,
        expires_at=tx.now() + TEMPLATES[UPDATE_TEMPLATE].lifetime,
    )
