"""Audit entries for subscribers."""

import asyncpg

from tapgate import ids
from tapgate.api.request_context import RequestContext
from tapgate.audit.trail import AuditTrail, Changes

_trail = AuditTrail("subscriber")


async def record_audit_entry(
    tx: asyncpg.Connection,
    request: RequestContext,
    subscriber_id: int,
    action: str,
    *,
    result: str = "success",
    reason: str | None = None,
    changes: Changes | None = None,
) -> None:
    await _trail.record(
        tx,
        request.actor,
        ids.encode(ids.SUBSCRIBER, subscriber_id),
        action,
        result=result,
        reason=reason,
        changes=changes,
    )
