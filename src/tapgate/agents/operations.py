"""Operations on agents: registration, status and PIN."""

import msgspec

from tapgate.agents import model, queries
from tapgate.agents.model import Agent
from tapgate.api.transitions import Transition
from tapgate.audit.entry import MASK
from tapgate.audit.trail import AuditTrail
from tapgate.auth.actors import Actor
from tapgate.errors import ApiError, Code
from tapgate.ledger import chart
from tapgate.ledger.accounts import open_account
from tapgate.ledger.chart import AccountStatus
from tapgate.ledger.pin_failures import check_pin
from tapgate.pins.storage import set_pin
from tapgate.pins.verifier import PinVerifier
from tapgate.schemas.agents import AgentRegistration
from tapgate.store.database import RaiseAfterCommit
from tapgate.store.transaction import Transaction

_trail = AuditTrail("agent")

#: The audit log records that a PIN was changed, but not the PIN.
_MASKED_CHANGES = {"pin": (MASK, MASK)}


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
    after = msgspec.structs.replace(
        model.apply_transition(before, transition, reason), updated_at=tx.now()
    )
    await queries.save_state(tx, after)
    old, new = model.to_record(before), model.to_record(after)
    await _trail.record_change(tx, actor, new.id, transition.event, old, new, reason=reason)
    return after


async def change_pin(
    tx: Transaction,
    actor: Actor,
    agent_id: int,
    old_pin: str,
    new_pin: str,
    *,
    pin_verifier: PinVerifier,
) -> None:
    # This endpoint returns 400 for a weak PIN, as for a malformed one, instead of 422.
    pin_verifier.require_strong("new_pin", new_pin, error=Code.INVALID_REQUEST)
    agent = await queries.lock(tx, agent_id)
    model.require_not_terminated(agent)
    verdict = await check_pin(tx, agent.id, old_pin, pin_verifier.matches)
    if verdict.error is not None:
        await _trail.record(
            tx, actor, agent.public_id, "pin_changed", result="failure", reason=verdict.code
        )
        raise RaiseAfterCommit(verdict.error)
    if new_pin == old_pin:
        raise RaiseAfterCommit(ApiError(Code.SAME_PIN))
    await set_pin(tx, agent.id, pin_verifier.hash(new_pin))
    await _trail.record(tx, actor, agent.public_id, "pin_changed", changes=_MASKED_CHANGES)
