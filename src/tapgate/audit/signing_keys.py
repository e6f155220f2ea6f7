"""Creation and deletion of signing keys, with their audit entries."""

from tapgate import ids
from tapgate.audit.trail import AuditTrail
from tapgate.auth.actors import Actor
from tapgate.auth.hmac_keys import HmacKeys, NewHmacKey
from tapgate.errors import ApiError, Code
from tapgate.store.transaction import Transaction

_trail = AuditTrail("signing_key")


async def create_signing_key(
    tx: Transaction,
    actor: Actor,
    hmac_keys: HmacKeys,
    *,
    processor_id: int | None = None,
    terminal_id: int | None = None,
    partner_id: int | None = None,
) -> NewHmacKey:
    """Create a key for a partner, for a processor, or for one of the processor's terminals."""
    key = await hmac_keys.create(
        tx, processor_id=processor_id, terminal_id=terminal_id, partner_id=partner_id
    )
    owners = (
        ("processor_id", ids.PROCESSOR, processor_id),
        ("terminal_id", ids.TERMINAL, terminal_id),
        ("partner_id", ids.PARTNER, partner_id),
    )
    changes = {
        field: (None, ids.encode(prefix, owner))
        for field, prefix, owner in owners
        if owner is not None
    }
    await _trail.record(tx, actor, ids.encode(ids.KEY, key.id), "created", changes=changes)
    return key


async def delete_signing_key(
    tx: Transaction, actor: Actor, hmac_keys: HmacKeys, key_id: int, *, owner: str, owner_id: int
) -> None:
    """Delete a key of a `processor` or `partner`, even its last one.

    Waits up to one second after the commit for every process to apply the change.
    """
    if not await hmac_keys.delete(tx, key_id, owner_id=owner_id):
        raise ApiError(Code.NOT_FOUND, f"The {owner} has no such key.")
    prefix = ids.PROCESSOR if owner == "processor" else ids.PARTNER
    changes = {f"{owner}_id": (ids.encode(prefix, owner_id), None)}
    await _trail.record(tx, actor, ids.encode(ids.KEY, key_id), "deleted", changes=changes)
