"""Operations on a partner's signing keys: create and delete."""

from tapgate import ids
from tapgate.api.request_context import RequestContext
from tapgate.audit.trail import AuditTrail
from tapgate.auth.hmac_keys import NewHmacKey
from tapgate.errors import ApiError, Code
from tapgate.partners import queries as partners

_trail = AuditTrail("signing_key")


async def create(request: RequestContext, partner_id: int) -> NewHmacKey:
    services = request.services
    async with services.transaction() as tx:
        await partners.require_exists(tx, partner_id)
        key = await services.authenticator.hmac_keys.create_for_partner(tx, partner_id)
        changes = {"partner_id": (None, ids.encode(ids.PARTNER, partner_id))}
        await _trail.record(
            tx, request.actor, ids.encode(ids.KEY, key.id), "created", changes=changes
        )
    return key


async def delete(request: RequestContext, partner_id: int, key_id: int) -> None:
    """Delete a key, even the partner's last key.

    Waits up to one second for every process to apply the change.
    """
    services = request.services
    async with services.transaction() as tx:
        await partners.require_exists(tx, partner_id)
        ticket = await services.authenticator.hmac_keys.delete(tx, key_id, owner_id=partner_id)
        if ticket is None:
            raise ApiError(Code.NOT_FOUND, "The partner has no such key.")
        changes = {"partner_id": (ids.encode(ids.PARTNER, partner_id), None)}
        await _trail.record(
            tx, request.actor, ids.encode(ids.KEY, key_id), "deleted", changes=changes
        )
    await services.signals.wait_for_acks(ticket)
