"""Operations on agents: registration, profile and status."""

import msgspec

from tapgate.auth.actors import Actor
from tapgate.business.agents import model, queries
from tapgate.business.agents.model import Agent
from tapgate.business.owners.status_transitions import Transition
from tapgate.core.message_templates import Notice
from tapgate.events.audit.trail import AuditTrail
from tapgate.events.notifications.account_notices import (
    NoticeRecipient,
    get_language,
    send_notice,
    send_phone_changed,
)
from tapgate.ledger import chart
from tapgate.ledger.accounts import open_account
from tapgate.ledger.chart import AccountStatus
from tapgate.ledger.pins.pin_storage import set_pin
from tapgate.ledger.pins.pin_verifier import PinVerifier
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.schemas.agents import AgentRegistration, AgentUpdate

_trail = AuditTrail("agent")


async def register(
    tx: Transaction,
    actor: Actor,
    registration: AgentRegistration,
    *,
    pin_verifier: PinVerifier,
    currency: str,
) -> Agent:
    pin_verifier.require_strong("pin", registration.pin)
    parent_id = model.decode_parent_id(registration)
    if parent_id is not None:
        # Lock the parent, so that it cannot be terminated during the registration.
        model.require_valid_parent(await queries.lock(tx, parent_id))
    fields, now = msgspec.structs.asdict(registration), tx.now()
    del fields["pin"]
    agent = Agent(
        **fields | {"parent_agent_id": parent_id},
        id=tx.new_id(),
        account_id=tx.new_id(),
        commission_account_id=tx.new_id(),
        currency=currency,
        created_at=now,
        updated_at=now,
    )
    for account_id, kind in (
        (agent.account_id, chart.FLOAT),
        (agent.commission_account_id, chart.COMMISSION),
    ):
        await open_account(
            tx,
            id=account_id,
            kind=kind,
            owner_id=agent.id,
            holder_name=agent.name,
            public_name=agent.public_name,
            currency=agent.currency,
        )
    await queries.add(tx, agent)
    await set_pin(tx, agent.id, pin_verifier.hash(registration.pin))
    changes = {"status": (None, model.PUBLIC_STATUSES[agent.status])}
    await _trail.record(tx, actor, agent.public_id, "created", changes=changes)
    return agent


async def change_status(
    tx: Transaction,
    actor: Actor,
    agent_id: int,
    transition: Transition[AccountStatus],
    reason: str | None,
) -> Agent:
    """Suspend, activate or terminate an agent. Its sub-agents are not affected."""
    before = await queries.lock(tx, agent_id)
    after = model.apply_transition(before, transition, reason)
    return await _save(tx, actor, before, after, action=transition.event, reason=reason)


async def update(tx: Transaction, actor: Actor, agent_id: int, update: AgentUpdate) -> Agent:
    """Update an agent. If no value changes, no audit entry is written."""
    before = await queries.lock(tx, agent_id)
    after = model.apply_update(before, update)
    return before if after == before else await _save(tx, actor, before, after, action="updated")


async def _save(
    tx: Transaction,
    actor: Actor,
    before: Agent,
    after: Agent,
    *,
    action: str,
    reason: str | None = None,
) -> Agent:
    after = msgspec.structs.replace(after, updated_at=tx.now())
    await queries.save(tx, after)
    old, new = model.to_record(before), model.to_record(after)
    await _trail.record_change(tx, actor, new.id, action, old, new, reason=reason)
    await _send_notices(tx, before, after)
    return after


async def _send_notices(tx: Transaction, before: Agent, after: Agent) -> None:
    if (after.phone_number, after.status) == (before.phone_number, before.status):
        return
    # An agent has no language of its own, but may also be a subscriber.
    language = await get_language(tx, before.phone_number)
    recipient = NoticeRecipient(after.phone_number, after.public_name, language)
    if after.phone_number != before.phone_number:
        await send_phone_changed(tx, recipient, before.phone_number, can_object=False)
    if after.status != before.status:
        text = model.STATUS_TEXTS[language][after.status]
        await send_notice(tx, recipient, Notice.WALLET_CHANGED, text)
