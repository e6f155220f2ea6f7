"""The audit entries of cards."""

import asyncpg

from tapgate.audit import trail
from tapgate.audit.trail import Changes
from tapgate.edge.call import Call


async def record(
    tx: asyncpg.Connection,
    call: Call,
    serial: str | None,
    action: str,
    *,
    reason: str | None = None,
    changes: Changes | None = None,
) -> None:
    """`serial` is None for what is done to many at once."""
    await trail.record(
        tx,
        call.services,
        call.origin,
        event=f"card.{action}",
        resource_type="card",
        resource_id=serial,
        reason=reason,
        changes=changes,
    )
