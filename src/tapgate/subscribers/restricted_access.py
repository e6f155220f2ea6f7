"""Admin access to restricted subscribers, granted with a code sent to the subscriber's phone."""

from datetime import datetime, timedelta

from tapgate.api.request_context import RequestContext
from tapgate.auth.one_time_codes import CodeRequest
from tapgate.subscribers import codes, queries
from tapgate.subscribers.audit_trail import record_audit_entry

ACCESS_LIFETIME = timedelta(minutes=15)


async def request_access(request: RequestContext, subscriber_id: int) -> None:
    async with request.services.transaction() as tx:
        subscriber = await queries.get(tx, subscriber_id)
        await codes.send(tx, request, subscriber, _build_code_request(request, subscriber_id))
        await record_audit_entry(tx, request, subscriber_id, "restricted_access_requested")


async def grant_access(request: RequestContext, subscriber_id: int, code: str) -> datetime:
    """Redeem the code, grant this admin access, and return the time at which the access expires."""
    await queries.get(request.services.database, subscriber_id)
    code_request = _build_code_request(request, subscriber_id)
    async with codes.redeem(request, code_request, code, "restricted_access_granted") as tx:
        expires_at = request.services.clock() + ACCESS_LIFETIME
        await tx.execute(
            """INSERT INTO restricted_access (admin_id, subscriber_id, expires_at)
               VALUES ($1, $2, $3)
               ON CONFLICT (admin_id, subscriber_id) DO UPDATE SET expires_at = $3""",
            request.principal.admin_id,
            subscriber_id,
            expires_at,
        )
        await record_audit_entry(tx, request, subscriber_id, "restricted_access_granted")
    return expires_at


def _build_code_request(request: RequestContext, subscriber_id: int) -> CodeRequest:
    return CodeRequest("restricted_access", subscriber_id, requester=request.principal.id)
