"""Admin access to restricted subscribers, granted by a code sent to the subscriber's phone."""

from datetime import datetime, timedelta

from tapgate.credentials.one_time_codes import CodeRequest
from tapgate.edge.request_context import RequestContext
from tapgate.subscribers import codes, queries
from tapgate.subscribers.audit_trail import record_audit_entry

ACCESS_LIFETIME = timedelta(minutes=15)


async def request_access(call: RequestContext, subscriber_id: int) -> None:
    async with call.services.database.transaction() as tx:
        subscriber = await queries.get(tx, subscriber_id)
        await codes.send(tx, call, subscriber, _build_code_request(call, subscriber_id))
        await record_audit_entry(tx, call, subscriber_id, "restricted_access_requested")


async def grant_access(call: RequestContext, subscriber_id: int, code: str) -> datetime:
    """Grant this admin access to the subscriber, and return when the access expires."""
    await queries.get(call.services.database, subscriber_id)
    question = _build_code_request(call, subscriber_id)
    async with codes.redeem(call, question, code, "restricted_access_granted") as tx:
        expires_at = call.services.clock() + ACCESS_LIFETIME
        await tx.execute(
            """INSERT INTO restricted_access (admin_id, subscriber_id, expires_at)
               VALUES ($1, $2, $3)
               ON CONFLICT (admin_id, subscriber_id) DO UPDATE SET expires_at = $3""",
            call.principal.admin_id,
            subscriber_id,
            expires_at,
        )
        await record_audit_entry(tx, call, subscriber_id, "restricted_access_granted")
    return expires_at


def _build_code_request(call: RequestContext, subscriber_id: int) -> CodeRequest:
    return CodeRequest("restricted_access", subscriber_id, asker=call.principal.id)
