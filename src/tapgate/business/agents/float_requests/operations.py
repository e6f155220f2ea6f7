"""Operations on float requests: ask, pass on, decline, cancel, and the end by a funding."""

from typing import Any, Final

from msgspec.structs import replace

from tapgate.auth import owner_limits
from tapgate.auth.actors import Actor
from tapgate.business.agents import queries as agents
from tapgate.business.agents.float_requests import model, queries
from tapgate.business.agents.float_requests.model import FloatRequest
from tapgate.core.message_templates import TEMPLATES
from tapgate.core.public_names import hide_links
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
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids, money
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.float_requests import FloatRequestStatus, NewFloatRequest

_REQUEST_TEMPLATE: Final = "float_request"
_DECLINED_TEMPLATE: Final = "float_request_declined"
_FUNDED_TEMPLATE: Final = "float_request_funded"
_MAX_SHOWN_LENGTH: Final = 200

_trail = AuditTrail("float_request")


async def ask(
    tx: Transaction,
    actor: Actor,
    agent_id: int,
    body: NewFloatRequest,
    key: ScopedIdempotencyKey | None,
    *,
    currency: str,
) -> tuple[FloatRequest, bool]:
    """Add a float request; return it and whether it is new. A repeated request gets the same one.

    The agent's lock makes a concurrent repetition wait.
    """
    agent, now = await agents.lock(tx, agent_id), tx.now()
    known = None if key is None else await queries.find_by_key(tx, key)
    if known is not None and key is not None:
        if known.fingerprint != key.fingerprint:
            raise ApiError(Code.DUPLICATE_REQUEST)
        return known, False
    if agent.status != AccountStatus.ACTIVE:
        raise ApiError(Code.AGENT_NOT_ACTIVE)
    await owner_limits.require_room(tx, owner_limits.FLOAT_REQUESTS, agent.id)
    waits = agent.parent_agent_id is not None
    item = FloatRequest(
        id=tx.new_id(),
        agent_id=agent.id,
        parent_agent_id=agent.parent_agent_id,
        amount=money.parse(body.amount, currency),
        currency=currency,
        note=body.note,
        status=FloatRequestStatus.OPEN,
        finance_at=now + model.SUPER_AGENT_PERIOD if waits else now,
        transaction_id=None,
        reason=None,
        created_at=now,
        updated_at=now,
        name=agent.name,
        business_name=agent.business_name,
        fingerprint=None if key is None else key.fingerprint,
    )
    await queries.add(tx, item, key)
    await _trail.record(
        tx, actor, item.public_id, "created", changes={"amount": (None, body.amount)}
    )
    if agent.parent_agent_id is not None:
        shown = "" if body.note is None else f" ({hide_links(body.note)[:_MAX_SHOWN_LENGTH]})"
        await _tell(
            tx, tx.vault, agent.parent_agent_id, item, _REQUEST_TEMPLATE, agent.public_name, shown
        )
    return item, True


async def pass_on(tx: Transaction, actor: Actor, request_id: int) -> FloatRequest:
    """Hand a sub-agent's request over to finance now. Nothing changes if finance has it already."""
    item = await _lock_open(tx, request_id)
    if item.finance_at <= tx.now():
        return item
    return await _save(tx, actor, item, "passed_on", finance_at=tx.now())


async def decline(tx: Transaction, actor: Actor, request_id: int, reason: str) -> FloatRequest:
    item = await _lock_open(tx, request_id)
    after = await _save(
        tx, actor, item, "declined", status=FloatRequestStatus.DECLINED, reason=reason
    )
    shown = hide_links(reason)[:_MAX_SHOWN_LENGTH]
    await _tell(tx, tx.vault, item.agent_id, after, _DECLINED_TEMPLATE, shown)
    return after


async def cancel(tx: Transaction, actor: Actor, request_id: int) -> FloatRequest:
    item = await _lock_open(tx, request_id)
    return await _save(tx, actor, item, "cancelled", status=FloatRequestStatus.CANCELLED)


async def finish_funding(
    tx: Transaction,
    audit: AuditFacts,
    request_id: int,
    result: TransactionResult,
    *,
    vault: Vault,
) -> None:
    """End the request in the ledger's transaction, or reject the funding if it has ended.

    Of concurrent fundings, declines and cancellations, the first one gets the lock and wins.
    """
    item = await queries.get(tx, request_id, for_update=True)
    if item.status != FloatRequestStatus.OPEN:
        raise RejectedBeforeCommitError(Code.FLOAT_REQUEST_NOT_OPEN)
    after = await _save(
        tx,
        Actor.from_audit_facts(audit),
        item,
        "funded",
        status=FloatRequestStatus.FUNDED,
        transaction_id=result.transaction_id,
    )
    transaction_id = ids.encode(ids.TRANSACTION, result.transaction_id)
    await _tell(tx, vault, item.agent_id, after, _FUNDED_TEMPLATE, transaction_id)


async def _lock_open(tx: Transaction, request_id: int) -> FloatRequest:
    item = await queries.get(tx, request_id, for_update=True)
    model.require_open(item)
    return item


async def _save(
    tx: Transaction, actor: Actor, before: FloatRequest, action: str, **fields: Any
) -> FloatRequest:
    after = replace(before, **fields, updated_at=tx.now())
    await queries.save(tx, after)
    changes = {} if after.status == before.status else {"status": (before.status, after.status)}
    await _trail.record(
        tx, actor, after.public_id, action, changes=changes, reason=fields.get("reason")
    )
    return after


async def _tell(
    tx: Transaction,
    vault: Vault,
    agent_id: int,
    item: FloatRequest,
    template: str,
    *parameters: str,
) -> None:
    """Enqueue a message to an agent's phone. The amount is the first parameter."""
    phone_number = await queries.get_phone_number(tx, agent_id)
    language = await get_language(tx, phone_number)
    await enqueue_message(
        tx,
        vault,
        to=phone_number,
        template=template,
        parameters=[money.format_money(item.amount, item.currency, language), *parameters],
        language=language,
        expires_at=tx.now() + TEMPLATES[template].lifetime,
    )
