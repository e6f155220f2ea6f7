"""Creation and deletion of signing keys, with their audit entries."""

from tapgate.auth.actors import Actor
from tapgate.auth.hmac_keys import HmacKeys, NewHmacKey
from tapgate.events.audit.trail import AuditTrail
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code

_trail = AuditTrail("signing_key")
_PREFIXES = {
    "processor_id": ids.PROCESSOR,
    "terminal_id": ids.TERMINAL,
    "partner_id": ids.PARTNER,
}


async def create_signing_key(
    tx: Transaction, actor: Actor, hmac_keys: HmacKeys, **owner_ids: int | None
) -> NewHmacKey:
    """Create a key for the owner, which is named as in `HmacKeys.create`."""
    key = await hmac_keys.create(tx, created_by=actor.admin_id, **owner_ids)
    changes = {
        field: (None, ids.encode(_PREFIXES[field], owner_id))
        for field, owner_id in owner_ids.items()
        if owner_id is not None
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
    field = f"{owner}_id"
    changes = {field: (ids.encode(_PREFIXES[field], owner_id), None)}
    await _trail.record(tx, actor, ids.encode(ids.KEY, key_id), "deleted", changes=changes)
