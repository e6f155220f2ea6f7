"""Operations on agents: register, suspend, activate, terminate and change the PIN."""

import asyncpg
import msgspec

from tapgate.agents import model, queries
from tapgate.agents.model import AccountStatus, Agent
from tapgate.api.request_context import RequestContext
from tapgate.api.transitions import Transition
from tapgate.audit.changes import diff_records
from tapgate.audit.entry import MASK
from tapgate.audit.trail import AuditTrail
from tapgate.errors import ApiError, Code
from tapgate.ledger import chart
from tapgate.ledger.accounts import open_account
from tapgate.ledger.pin_failures import check_pin
from tapgate.pins.storage import set_pin
from tapgate.schemas.agents import AgentRegistration

_trail = AuditTrail("agent")

#: The audit log records that a PIN was changed, but not the PIN.
_MASKED_CHANGES = {"pin": (MASK, MASK)}


async def register(request: RequestContext, registration: AgentRegistration) -> Agent:
    services = request.services
    services.pin_verifier.require_strong("pin", registration.pin)
    parent_id = model.decode_parent_id(registration)
    async with services.transaction() as tx:
        agent = model.build_agent(
            registration,
            None if parent_id is None else await _lock_parent(tx, parent_id),
            id=services.new_id(),
            account_id=services.new_id(),
            commission_account_id=services.new_id(),
            currency=services.settings.currency,
            now=services.clock(),
        )
        await _open_accounts(tx, agent)
        await queries.add(tx, agent)
        await set_pin(tx, agent.id, services.pin_verifier.hash(registration.pin))
        changes = {"status": (None, model.PUBLIC_STATUSES[agent.status])}
        await _trail.record(tx, request.actor, agent.public_id, "created", changes=changes)
    return agent


async def _lock_parent(tx: asyncpg.Connection, parent_id: int) -> Agent:
    """Lock and return the parent, so that it cannot be terminated during the registration."""
    parent = await queries.lock(tx, parent_id)
    model.require_valid_parent(parent)
    return parent


async def _open_accounts(tx: asyncpg.Connection, agent: Agent) -> None:
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


async def suspend(request: RequestContext, agent_id: int, reason: str) -> Agent:
    return await _change_status(request, agent_id, model.SUSPEND, reason)


async def activate(request: RequestContext, agent_id: int, reason: str | None) -> Agent:
    return await _change_status(request, agent_id, model.ACTIVATE, reason)


async def terminate(request: RequestContext, agent_id: int, reason: str) -> Agent:
    """Terminate an agent permanently.

    The float and commission balances must be zero, with no funds on hold. Sub-agents are not
    affected.
    """
    return await _change_status(request, agent_id, model.TERMINATE, reason)


async def _change_status(
    request: RequestContext,
    agent_id: int,
    transition: Transition[AccountStatus],
    reason: str | None,
) -> Agent:
    async with request.services.transaction() as tx:
        before = await queries.lock(tx, agent_id)
        after = msgspec.structs.replace(
            model.apply_transition(before, transition, reason), updated_at=request.services.clock()
        )
        await queries.save_state(tx, after)
        changes = diff_records(model.to_record(before), model.to_record(after))
        await _trail.record(
            tx, request.actor, after.public_id, transition.event, reason=reason, changes=changes
        )
    return after


async def change_pin(request: RequestContext, agent_id: int, old_pin: str, new_pin: str) -> None:
    services = request.services
    # This endpoint returns 400 for a weak PIN, as for a malformed one, instead of 422.
    services.pin_verifier.require_strong("new_pin", new_pin, error=Code.INVALID_REQUEST)
    is_same = new_pin == old_pin
    async with services.transaction() as tx:
        agent = await queries.lock(tx, agent_id)
        model.require_not_terminated(agent)
        verdict = await check_pin(tx, agent.id, old_pin, services.pin_verifier.matches)
        # Raise for a wrong PIN only after the commit, so that the failure count is stored.
        if verdict.code is not None:
            await _trail.record(
                tx,
                request.actor,
                agent.public_id,
                "pin_changed",
                result="failure",
                reason=verdict.code,
            )
        elif not is_same:
            await set_pin(tx, agent.id, services.pin_verifier.hash(new_pin))
            await _trail.record(
                tx, request.actor, agent.public_id, "pin_changed", changes=_MASKED_CHANGES
            )
    if verdict.error is not None:
        raise verdict.error
    if is_same:
        raise ApiError(Code.SAME_PIN)
