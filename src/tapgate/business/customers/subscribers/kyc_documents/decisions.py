"""KYC decisions: approve a level, reject the documents, or ask for more."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import msgspec

from tapgate.auth.actors import Actor
from tapgate.business.customers.subscribers import queries as subscribers
from tapgate.business.customers.subscribers.kyc_documents import queries
from tapgate.business.customers.subscribers.model import Subscriber
from tapgate.business.customers.subscribers.operations import save
from tapgate.core.vault import Vault
from tapgate.events.notifications.notification_messages import enqueue_message
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.subscribers import (
    MAX_KYC_LEVEL,
    KycDecision,
    KycDecisionRequest,
    KycDocumentType,
    KycStatus,
    SubscriberLanguage,
)

KYC_DECIDED_TEMPLATE: Final = "kyc_decided"
#: A subscriber who is offline for longer sees the outcome in the chat.
_MESSAGE_LIFETIME: Final = timedelta(days=7)

_STATUSES: Final = {
    KycDecision.APPROVE: KycStatus.VERIFIED,
    KycDecision.REJECT: KycStatus.REJECTED,
    KycDecision.MORE_NEEDED: KycStatus.PENDING,
}
_AUDIT_ACTIONS: Final = {
    KycDecision.APPROVE: "kyc_approved",
    KycDecision.REJECT: "kyc_rejected",
    KycDecision.MORE_NEEDED: "kyc_more_needed",
}

_OUTCOME_TEXTS: Final[Mapping[str, Mapping[str, str]]] = {
    SubscriberLanguage.EN: {
        KycDecision.APPROVE: "approved",
        KycDecision.REJECT: "not approved",
        KycDecision.MORE_NEEDED: "more documents needed",
    },
    SubscriberLanguage.FR: {
        KycDecision.APPROVE: "approuvée",
        KycDecision.REJECT: "refusée",
        KycDecision.MORE_NEEDED: "documents supplémentaires demandés",
    },
}
#: Text if there is no reason, because a template parameter must not be empty.
_LEVEL_TEXTS: Final = {
    SubscriberLanguage.EN: "Your account is now at level {}, and its limits apply immediately.",
    SubscriberLanguage.FR: "Votre compte est maintenant au niveau {} et ses limites s'appliquent "
    "immédiatement.",
}
_SEND_TEXTS: Final = {
    SubscriberLanguage.EN: "Please send: {}.",
    SubscriberLanguage.FR: "Veuillez envoyer : {}.",
}
_NOTHING_MISSING_TEXTS: Final = {
    SubscriberLanguage.EN: "Please send clearer photos of your documents.",
    SubscriberLanguage.FR: "Veuillez envoyer des photos plus nettes de vos documents.",
}
_DOCUMENT_TEXTS: Final[Mapping[str, Mapping[str, str]]] = {
    SubscriberLanguage.EN: {
        KycDocumentType.ID_FRONT: "the front of your ID",
        KycDocumentType.ID_BACK: "the back of your ID",
        KycDocumentType.SELFIE: "a selfie",
        KycDocumentType.PROOF_OF_ADDRESS: "a proof of address",
    },
    SubscriberLanguage.FR: {
        KycDocumentType.ID_FRONT: "le recto de votre pièce d'identité",
        KycDocumentType.ID_BACK: "le verso de votre pièce d'identité",
        KycDocumentType.SELFIE: "un selfie",
        KycDocumentType.PROOF_OF_ADDRESS: "un justificatif de domicile",
    },
}


async def decide(
    tx: Transaction,
    actor: Actor,
    subscriber_id: int,
    request: KycDecisionRequest,
    *,
    vault: Vault,
) -> Subscriber:
    """Decide on the documents uploaded so far, and notify the subscriber.

    Level and status change together. Of parallel decisions, only one succeeds.
    """
    seen = await subscribers.get(tx, subscriber_id)
    before = await subscribers.lock_editable(tx, actor, subscriber_id)
    level = get_level(before, request)
    _require_undecided(seen, before, request)
    decision = KycDecision(request.decision)
    if decision is KycDecision.APPROVE:
        await _require_documents(tx, subscriber_id, level)
    await queries.mark_decided(tx, subscriber_id, tx.now(), rejected=decision is KycDecision.REJECT)
    after = msgspec.structs.replace(
        before, kyc_level=level, kyc_status=_STATUSES[decision], kyc_pending_since=None
    )
    after = await save(
        tx, actor, before, after, action=_AUDIT_ACTIONS[decision], reason=request.reason
    )
    await _notify(tx, after, decision, request.reason, vault=vault)
    return after


def get_level(subscriber: Subscriber, request: KycDecisionRequest) -> int:
    """Return the level after the decision; raise if it cannot be approved."""
    current = subscriber.kyc_level
    if request.decision != KycDecision.APPROVE:
        if request.kyc_level is not None:
            raise invalid_field("kyc_level", "can be set only by approve")
        return current
    if request.kyc_level is None and current == MAX_KYC_LEVEL:
        raise invalid_field("kyc_level", "is already the highest")
    level = current + 1 if request.kyc_level is None else request.kyc_level
    if level < current:
        raise invalid_field("kyc_level", "must not be below the current level")
    return level


def _require_undecided(
    seen: Subscriber, subscriber: Subscriber, request: KycDecisionRequest
) -> None:
    """Reject a decision if nothing is left to decide, or a parallel decision came first.

    `seen` is the subscriber before the lock was granted. After a request for more documents, the
    subscriber can still be approved or rejected without a new document.
    """
    is_decided = subscriber.kyc_status in (KycStatus.VERIFIED, KycStatus.REJECTED) or (
        request.decision == KycDecision.MORE_NEEDED and subscriber.kyc_status == KycStatus.PENDING
    )
    if _get_kyc_state(seen) != _get_kyc_state(subscriber) or (
        is_decided and subscriber.kyc_pending_since is None
    ):
        raise ApiError(
            Code.ALREADY_RESOLVED,
            "The subscriber's documents were already decided on. Reload and check the result.",
        )


def _get_kyc_state(subscriber: Subscriber) -> tuple[object, ...]:
    return subscriber.kyc_level, subscriber.kyc_status, subscriber.kyc_pending_since


async def _require_documents(tx: Transaction, subscriber_id: int, level: int) -> None:
    missing = await queries.list_missing_types(tx, subscriber_id, level)
    if missing:
        raise ApiError(
            Code.KYC_REQUIREMENTS_NOT_MET,
            f"Level {level} requires these documents: {', '.join(missing)}.",
            details={"missing": missing},
        )


async def _notify(
    tx: Transaction,
    subscriber: Subscriber,
    decision: KycDecision,
    reason: str | None,
    *,
    vault: Vault,
) -> None:
    language = SubscriberLanguage(subscriber.language)
    await enqueue_message(
        tx,
        vault,
        to=subscriber.phone_number,
        template=KYC_DECIDED_TEMPLATE,
        parameters=[
            _OUTCOME_TEXTS[language][decision],
            " ".join((reason or await _build_reason(tx, subscriber, decision, language)).split()),
        ],
        language=language,
        expires_at=tx.now() + _MESSAGE_LIFETIME,
    )


async def _build_reason(
    tx: Transaction, subscriber: Subscriber, decision: KycDecision, language: SubscriberLanguage
) -> str:
    """Return the text for a decision without a reason. Rejections always have one."""
    if decision is KycDecision.APPROVE:
        return _LEVEL_TEXTS[language].format(subscriber.kyc_level)
    next_level = min(subscriber.kyc_level + 1, MAX_KYC_LEVEL)
    missing = await queries.list_missing_types(tx, subscriber.id, next_level)
    if not missing:
        return _NOTHING_MISSING_TEXTS[language]
    names = ", ".join(_DOCUMENT_TEXTS[language][name] for name in missing)
    return _SEND_TEXTS[language].format(names)
