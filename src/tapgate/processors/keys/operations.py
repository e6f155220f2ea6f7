"""Operations on signing keys: create and delete."""

import asyncpg

from tapgate import ids
from tapgate.api.request_context import RequestContext
from tapgate.audit.trail import AuditTrail, Changes
from tapgate.auth.hmac_keys import NewHmacKey
from tapgate.errors import ApiError, Code
from tapgate.processors import queries as processors
from tapgate.processors.terminals import queries as terminals

_trail = AuditTrail("signing_key")


async def create(request: RequestContext, processor_id: int, terminal_id: int | None) -> NewHmacKey:
    """Create a signing key for the processor, or for one of its terminals."""
    services = request.services
    async with services.transaction() as tx:
        await processors.require_exists(tx, processor_id)
        if terminal_id is not None:
            await terminals.lock(tx, terminal_id, processor_id=processor_id)
        key = await services.authenticator.hmac_keys.create_for_processor(
            tx, processor_id, terminal_id
        )
        changes: Changes = {"processor_id": (None, ids.encode(ids.PROCESSOR, processor_id))}
        if terminal_id is not None:
            changes = {**changes, "terminal_id": (None, ids.encode(ids.TERMINAL, terminal_id))}
        await _record_audit_entry(tx, request, key.id, "created", changes)
    return key


async def delete(request: RequestContext, processor_id: int, key_id: int) -> None:
    """Delete a key, even the processor's last key.

    Waits up to one second for every process to apply the change.
    """
    services = request.services
    async with services.transaction() as tx:
        await processors.require_exists(tx, processor_id)
        ticket = await services.authenticator.hmac_keys.delete(tx, key_id, owner_id=processor_id)
        if ticket is None:
            raise ApiError(Code.NOT_FOUND, "The processor has no such key.")
        changes = {"processor_id": (ids.encode(ids.PROCESSOR, processor_id), None)}
        await _record_audit_entry(tx, request, key_id, "deleted", changes)
    await services.signals.wait_for_acks(ticket)


async def _record_audit_entry(
    tx: asyncpg.Connection, request: RequestContext, key_id: int, action: str, changes: Changes
) -> None:
    await _trail.record(
        tx,
        request.actor,
        ids.encode(ids.KEY, key_id),
        action,
        changes=changes,
    )
