"""The audit entries of subscribers."""

import asyncpg

from tapgate import ids
from tapgate.audit import trail
from tapgate.audit.trail import Changes, Result
from tapgate.edge.call import Call


async def record(
    tx: asyncpg.Connection,
    call: Call,
    subscriber_id: int,
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
        event=f"subscriber.{action}",
        resource_type="subscriber",
        resource_id=ids.show(ids.SUBSCRIBER, subscriber_id),
        result=result,
        reason=reason,
        changes=changes,
    )
