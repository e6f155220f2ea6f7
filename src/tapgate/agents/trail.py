"""The audit entries of agents."""

import asyncpg

from tapgate.agents.model import Agent
from tapgate.audit import trail
from tapgate.audit.trail import Changes, Result
from tapgate.edge.call import Call


async def record(
    tx: asyncpg.Connection,
    call: Call,
    agent: Agent,
    action: str,
    *,
    result: Result = "success",
    reason: str | None = None,
    changes: Changes | None = None,
) -> None:
    await trail.record(
        tx,
        call.services,
        call.origin,
        event=f"agent.{action}",
        resource_type="agent",
        resource_id=agent.public_id,
        result=result,
        reason=reason,
        changes=changes,
    )
