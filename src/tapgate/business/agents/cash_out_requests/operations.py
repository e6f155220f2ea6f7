"""Operations on cash-out requests: ask, decline, and the end by the customer's confirmation."""

from typing import Final

from tapgate.auth.actors import Actor
from tapgate.business.agents import queries as agents
from tapgate.business.agents.cash_out_requests import model, queries
from tapgate.business.agents.cash_out_requests.model import CashOutRequest
from tapgate.business.agents.pins import pin_operations
from tapgate.core.message_templates import TEMPLATES
from tapgate.core.vault import Vault
from tapgate.events.audit.trail import AuditTrail
from tapgate.events.notifications.account_notices import get_language
from tapgate.events.notifications.notification_messages import enqueue_message
from tapgate.ledger.chart import AccountStatus
from tapgate.ledger.commands import (
    AuditFacts,
    RejectedBeforeCommitError,
    ScopedIdempotencyKey,
    TransactionResult,
)
from tapgate.ledger.pins.pin_verifier import PinVerifier
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids, money
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.cash_out_requests import CashOutRequestStatus
from tapgate_client.schemas.transactions import ReceiptStatus

_REQUEST_TEMPLATE: Final = "cash_out_request"
_UPDATE_TEMPLATE: Final = "cash_out_update"
#: What the agent reads about the customer's answer.
_OUTCOMES: Final = {
    "en": {
        "completed": "confirmed. Hand out the cash. Transaction {}.",
        "under_review": "held for review. Do not hand out cash. Transaction {}.",
        "declined": "declined by the customer. Do not hand out cash.",
    },
    "fr": {
        "completed": "confirmé. Remettez l'argent. Transaction {}.",
        "under_review": "retenu pour contrôle. Ne remettez pas d'argent. Transaction {}.",
        "declined": "refusé par le client. Ne remettez pas d'argent.",
    },
}

_trail = AuditTrail("cash_out_request")


async def find_customer(tx: Transaction, subscriber_id: int | None, card_serial: str | None) -> int:
    """Return the subscriber that a request names by ID or by card."""
    if card_serial is not None:
        holder: int | None = await tx.fetchval(
            "SELECT subscriber_id FROM cards WHERE serial = $1", card_serial
        )
        if holder is None:
            raise ApiError(Code.CARD_NOT_FOUND)
        return holder
    if not await tx.fetchval("SELECT true FROM subscribers WHERE id = $1", subscriber_id):
        raise ApiError(Code.SUBSCRIBER_NOT_FOUND)
    assert subscriber_id is not None
    return subscriber_id


async def ask(
    tx: Transaction,
    actor: Actor,
    agent_id: int,
    subscriber_id: int | None,
    card_serial: str | None,
    amount: int,
    pin: str,
    key: ScopedIdempotencyKey,
    *,
    currency: str,
    pin_verifier: PinVerifier,
) -> tuple[CashOutRequest, bool]:
    """Ask the customer to confirm a cash-out; return the request and whether it is new.

    The agent's lock makes a concurrent repetition wait, and the unique index lets each customer
    have one open request.
    """
    agent = await agents.lock(tx, agent_id)
    known = await queries.find_by_key(tx, key)
    if known is not None:
        if known.fingerprint != key.fingerprint:
            raise ApiError(Code.DUPLICATE_REQUEST)
        return known, False
    customer = await find_customer(tx, subscriber_id, card_serial)
    await pin_operations.verify(tx, actor, agent_id, pin, pin_verifier=pin_verifier)
    if agent.status != AccountStatus.ACTIVE:
        raise ApiError(Code.AGENT_NOT_ACTIVE)
    await queries.expire(tx, customer)
    request_id = await queries.add(
        tx,
        key,
        agent_id=agent_id,
        subscriber_id=customer,
        card_serial=card_serial,
        amount=amount,
        currency=currency,
        lifetime=model.LIFETIME,
    )
    if request_id is None:
        raise ApiError(Code.CASH_OUT_REQUEST_OPEN)
    item = await queries.get(tx, request_id)
    await _trail.record(
        tx, actor, item.public_id, "created", changes={"status": (None, item.status)}
    )
    await _ask_customer(tx, item)
    return item, True


async def decline(tx: Transaction, actor: Actor, request_id: int) -> CashOutRequest:
    item = await queries.get(tx, request_id, for_update=True)
    if not item.is_open(tx.now()):
        raise ApiError(Code.CASH_OUT_REQUEST_NOT_OPEN)
    await _end(tx, actor, item, CashOutRequestStatus.DECLINED, None)
    await _tell_agent(tx, tx.vault, item, "declined")
    return await queries.get(tx, request_id)


async def finish(
    tx: Transaction,
    audit: AuditFacts,
    request_id: int,
    result: TransactionResult,
    *,
    vault: Vault,
) -> None:
    """End the request in the ledger's transaction, or reject the cash-out if it has ended.

    Of concurrent confirmations and a decline, the first one gets the lock and wins.
    """
    item = await queries.get(tx, request_id, for_update=True)
    if not item.is_open(tx.now()):
        raise RejectedBeforeCommitError(Code.CASH_OUT_REQUEST_NOT_OPEN)
    actor = Actor.from_audit_facts(audit)
    await _end(tx, actor, item, CashOutRequestStatus.CONFIRMED, result.transaction_id)
    outcome = "completed" if result.status == ReceiptStatus.COMPLETED else "under_review"
    transaction_id = ids.encode(ids.TRANSACTION, result.transaction_id)
    await _tell_agent(tx, vault, item, outcome, transaction_id)


async def _end(
    tx: Transaction,
    actor: Actor,
    item: CashOutRequest,
    status: CashOutRequestStatus,
    transaction_id: int | None,
) -> None:
    await queries.save_status(tx, item.id, status, transaction_id)
    await _trail.record(
        tx, actor, item.public_id, status, changes={"status": (item.status, status)}
    )


async def _ask_customer(tx: Transaction, item: CashOutRequest) -> None:
    language = item.customer_language
    await enqueue_message(
        tx,
        tx.vault,
        to=item.customer_phone,
        template=_REQUEST_TEMPLATE,
        parameters=[
            item.subscriber_name,
            item.agent_name,
            money.format_money(item.amount, item.currency, language),
        ],
        language=language,
        expires_at=item.expires_at,
    )


async def _tell_agent(
    tx: Transaction, vault: Vault, item: CashOutRequest, outcome: str, *values: str
) -> None:
    language = await get_language(tx, item.agent_phone)
    await enqueue_message(
        tx,
        vault,
        to=item.agent_phone,
        template=_UPDATE_TEMPLATE,
        parameters=[
            money.format_money(item.amount, item.currency, language),
            item.subscriber_name,
            _OUTCOMES[language][outcome].format(*values),
        ],
        language=language,
        expires_at=tx.now() + TEMPLATES[_UPDATE_TEMPLATE].lifetime,
    )
