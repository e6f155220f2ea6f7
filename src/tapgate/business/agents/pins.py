"""Agent PIN operations."""

from tapgate.auth.actors import Actor
from tapgate.business.agents import queries
from tapgate.business.agents.model import Agent, require_not_terminated
from tapgate.business.pins.operations import PinOperations, PinOwner
from tapgate.events.notifications.account_notices import get_language
from tapgate.runtime.store.transaction import Transaction


async def _build_owner(tx: Transaction, agent: Agent) -> PinOwner:
    require_not_terminated(agent)
    return PinOwner(
        "agent",
        agent.public_id,
        agent.id,
        agent.phone_number,
        agent.id,
        agent.public_name,
        await get_language(tx, agent.phone_number),
    )


async def _get_owner(tx: Transaction, actor: Actor, agent_id: int) -> PinOwner:
    return await _build_owner(tx, await queries.get(tx, agent_id))


async def _lock_owner(tx: Transaction, actor: Actor, agent_id: int) -> PinOwner:
    return await _build_owner(tx, await queries.lock(tx, agent_id))


pin_operations = PinOperations(_get_owner, _lock_owner)
