"""Operations on API keys. Each change and its audit entry share one database transaction.

A change waits after the commit, up to one second, for every process to apply it.
"""

from datetime import datetime
from ipaddress import ip_network
from typing import Any

import msgspec

from tapgate.auth import owner_limits
from tapgate.auth.actors import Actor
from tapgate.auth.api_keys import ApiKey, ApiKeys
from tapgate.auth.owners import parse_owner, require_not_terminated
from tapgate.business.staff.api_keys import model
from tapgate.events.audit.trail import AuditTrail, diff_records
from tapgate.runtime.client_addresses import Network
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import clock, ids
from tapgate_client.errors import invalid_field
from tapgate_client.schemas.admin import ApiKeyChanges, NewApiKey

_trail = AuditTrail("api_key")
_AUDITED_FIELDS = ("name", "scopes", "owner_id", "rate_limit", "burst", "allowed_ips", "expires_at")


async def create(
    tx: Transaction,
    actor: Actor,
    new: NewApiKey,
    *,
    created_by: int,
    api_keys: ApiKeys,
    has_unknown_holder: bool = False,
) -> tuple[ApiKey, str]:
    """Create a key and return its record and the key itself, which is not stored."""
    owner = None if new.owner_id is None else parse_owner(new.owner_id)
    if owner is not None:
        await require_not_terminated(tx, owner)
        await owner_limits.require_room(tx, owner_limits.API_KEYS, owner)
    key, secret = await api_keys.create(
        tx,
        name=new.name,
        scopes=new.scopes,
        rate_limit=new.rate_limit,
        burst=new.burst,
        allowed_ips=_parse_networks(new.allowed_ips or []),
        expires_at=_parse_expiry(new.expires_at or "", tx.now()),
        created_by=created_by,
        has_unknown_holder=has_unknown_holder,
        owner=owner,
    )
    record = model.to_record(key)
    changes = {
        field: (None, value)
        for field in _AUDITED_FIELDS
        if (value := getattr(record, field)) is not None
    }
    await _trail.record(tx, actor, record.id, "created", changes=changes)
    return key, secret


async def update(
    tx: Transaction, actor: Actor, key_id: int, changes: ApiKeyChanges, *, api_keys: ApiKeys
) -> ApiKey:
    """Update the given settings."""
    before = await api_keys.get(tx, key_id, for_update=True)
    after = msgspec.structs.replace(before, **_get_changed_settings(before, changes, tx.now()))
    record = model.to_record(after)
    difference = diff_records(model.to_record(before), record)
    if not difference:
        return before
    await api_keys.save(tx, after)
    await _trail.record(tx, actor, record.id, "updated", changes=difference)
    return after


async def rotate(
    tx: Transaction,
    actor: Actor,
    key_id: int,
    grace_seconds: int,
    *,
    rotated_by: int,
    api_keys: ApiKeys,
) -> tuple[ApiKey, str]:
    """Replace the secret, and return the updated record and the new secret."""
    before = await api_keys.get(tx, key_id, for_update=True)
    after, secret = await api_keys.rotate(
        tx, before, grace_seconds=grace_seconds, rotated_by=rotated_by
    )
    changes = {"prefix": (before.prefix, after.prefix), "grace_seconds": (None, grace_seconds)}
    await _trail.record(tx, actor, ids.encode(ids.KEY, key_id), "rotated", changes=changes)
    return after, secret


async def delete(tx: Transaction, actor: Actor, key_id: int, *, api_keys: ApiKeys) -> None:
    await api_keys.delete(tx, key_id)
    await _trail.record(tx, actor, ids.encode(ids.KEY, key_id), "deleted")


def _get_changed_settings(before: ApiKey, changes: ApiKeyChanges, now: datetime) -> dict[str, Any]:
    """Return the new values of the given fields. An empty value resets a field to its default."""
    settings: dict[str, Any] = {
        field: value or None
        for field in ("name", "scopes", "rate_limit", "burst")
        if (value := getattr(changes, field)) is not None
    }
    if changes.allowed_ips is not None:
        settings["allowed_ips"] = _parse_networks(changes.allowed_ips)
    if changes.expires_at is not None and not _is_same_time(before.expires_at, changes.expires_at):
        settings["expires_at"] = _parse_expiry(changes.expires_at, now)
    return settings


def _parse_networks(allowed_ips: list[str]) -> list[Network] | None:
    return [ip_network(network) for network in dict.fromkeys(allowed_ips)] or None


def _parse_expiry(expires_at: str, now: datetime) -> datetime | None:
    if not expires_at:
        return None
    moment = datetime.fromisoformat(expires_at)
    if moment <= now:
        raise invalid_field("expires_at", "must be in the future")
    return moment


def _is_same_time(stored: datetime | None, value: str) -> bool:
    """Return whether the given time equals the stored time, at response precision.

    A client may send the stored time back unchanged, even if it is in the past.
    """
    if stored is None or not value:
        return False
    return clock.format_rfc3339(stored) == clock.format_rfc3339(datetime.fromisoformat(value))
