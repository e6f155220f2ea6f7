"""Partner and processor signing keys, with their audit entries."""

from typing import Any, Final, TypeVar

import msgspec

from tapgate.auth import owner_limits
from tapgate.auth.actors import Actor
from tapgate.auth.hmac_keys import HmacKeys
from tapgate.business.owners.owner_table import OwnerTable
from tapgate.core.pagination import paginate
from tapgate.core.records import build_record
from tapgate.events.audit.trail import AuditTrail
from tapgate.http.api.request_context import RequestContext
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.common import SigningKeyCreated
from tapgate_client.schemas.pagination import Page, PageQuery

R = TypeVar("R", bound=msgspec.Struct)

_trail: Final = AuditTrail("signing_key")
_PREFIXES: Final = {
    "processor_id": ids.PROCESSOR,
    "terminal_id": ids.TERMINAL,
    "partner_id": ids.PARTNER,
}


async def create_signing_key(
    tx: Transaction, actor: Actor, hmac_keys: HmacKeys, **owner_ids: int | None
) -> SigningKeyCreated:
    """Create a key for the owner, which is named as in `HmacKeys.create`."""
    holder_id = owner_ids.get("terminal_id") or next(filter(None, owner_ids.values()))
    await owner_limits.require_room(tx, owner_limits.SIGNING_KEYS, holder_id)
    key = await hmac_keys.create(tx, created_by=actor.admin_id, **owner_ids)
    changes = {
        field: (None, ids.encode(_PREFIXES[field], owner_id))
        for field, owner_id in owner_ids.items()
        if owner_id is not None
    }
    await _trail.record(tx, actor, ids.encode(ids.KEY, key.id), "created", changes=changes)
    return SigningKeyCreated(api_key_id=ids.encode(ids.KEY, key.id), hmac_secret=key.secret)


async def list_signing_keys(
    request: RequestContext,
    table: OwnerTable[Any],
    owner_id: int,
    query: PageQuery,
    record_type: type[R],
) -> Page[R]:
    """Return the owner's keys that are not deleted, newest first."""
    await table.require_exists(request.services.database, owner_id)
    keys = await request.services.authenticator.hmac_keys.list_page(owner_id, query)
    return paginate(
        keys,
        query,
        lambda key: build_record(record_type, key, api_key_id=ids.encode(ids.KEY, key.id)),
    )


async def delete_signing_key(
    request: RequestContext, tx: Transaction, table: OwnerTable[Any], owner_id: int, key_id: int
) -> None:
    """Delete an owner's key, even the last one.

    Waits up to one second after the commit for every process to apply the change.
    """
    await table.require_exists(tx, owner_id)
    if not await request.services.authenticator.hmac_keys.delete(tx, key_id, owner_id=owner_id):
        raise ApiError(Code.NOT_FOUND, f"The {table.noun} has no such key.")
    changes = {f"{table.noun}_id": (ids.encode(table.prefix, owner_id), None)}
    public_id = ids.encode(ids.KEY, key_id)
    await _trail.record(tx, request.actor, public_id, "deleted", changes=changes)
