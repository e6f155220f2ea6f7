"""Operations on API keys. Each change and its audit entry share one database transaction."""

from datetime import datetime
from ipaddress import ip_network
from typing import Any

import asyncpg
import msgspec

from tapgate import clock, ids
from tapgate.admin.api_keys import model
from tapgate.api.services import Services
from tapgate.audit import trail
from tapgate.audit.changes import diff_records
from tapgate.auth.actors import Actor
from tapgate.auth.api_keys import ApiKey
from tapgate.errors import invalid_field
from tapgate.http.client_addresses import Network
from tapgate.schemas.admin import ApiKeyChanges, NewApiKey

_AUDITED_FIELDS = ("name", "scopes", "rate_limit", "burst", "allowed_ips", "expires_at")


async def create(
    services: Services, actor: Actor, new: NewApiKey, *, created_by: int
) -> tuple[ApiKey, str]:
    """Create a key and return its record and the key itself, which is not stored."""
    async with services.transaction() as tx:
        key, secret = await services.authenticator.api_keys.create(
            tx,
            name=new.name,
            scopes=new.scopes,
            rate_limit=new.rate_limit,
            burst=new.burst,
            allowed_ips=_parse_networks(new.allowed_ips or []),
            expires_at=_parse_expiry(services, new.expires_at or ""),
            created_by=created_by,
        )
        record = model.to_record(key)
        changes = {
            field: (None, value)
            for field in _AUDITED_FIELDS
            if (value := getattr(record, field)) is not None
        }
        await _record_audit_entry(tx, services, actor, "created", key.id, changes)
    return key, secret


async def update(services: Services, actor: Actor, key_id: int, changes: ApiKeyChanges) -> ApiKey:
    """Update the given settings.

    Waits up to one second for every process to apply the change.
    """
    async with services.transaction() as tx:
        before = await _lock_key(tx, services, key_id)
        after = msgspec.structs.replace(before, **_get_changed_settings(services, before, changes))
        difference = diff_records(model.to_record(before), model.to_record(after))
        if not difference:
            return before
        ticket = await services.authenticator.api_keys.save(tx, after)
        await _record_audit_entry(tx, services, actor, "updated", key_id, difference)
    await services.signals.wait_for_acks(ticket)
    return after


async def rotate(
    services: Services, actor: Actor, key_id: int, grace_seconds: int
) -> tuple[ApiKey, str]:
    """Replace the secret, and return the updated record and the new secret.

    Waits up to one second for every process to apply the change.
    """
    async with services.transaction() as tx:
        before = await _lock_key(tx, services, key_id)
        after, secret, ticket = await services.authenticator.api_keys.rotate(
            tx, before, grace_seconds=grace_seconds
        )
        changes = {
            "prefix": (before.prefix, after.prefix),
            "grace_seconds": (None, grace_seconds),
        }
        await _record_audit_entry(tx, services, actor, "rotated", key_id, changes)
    await services.signals.wait_for_acks(ticket)
    return after, secret


async def delete(services: Services, actor: Actor, key_id: int) -> None:
    """Delete a key. Waits up to one second for every process to apply the change."""
    async with services.transaction() as tx:
        ticket = await services.authenticator.api_keys.delete(tx, key_id)
        if ticket is None:
            raise model.not_found()
        await _record_audit_entry(tx, services, actor, "deleted", key_id)
    await services.signals.wait_for_acks(ticket)


def _get_changed_settings(
    services: Services, before: ApiKey, changes: ApiKeyChanges
) -> dict[str, Any]:
    """Return the new values of the given fields. An empty value resets a field to its default."""
    settings: dict[str, Any] = {
        field: value or None
        for field in ("name", "scopes", "rate_limit", "burst")
        if (value := getattr(changes, field)) is not None
    }
    if changes.allowed_ips is not None:
        settings["allowed_ips"] = _parse_networks(changes.allowed_ips)
    if changes.expires_at is not None and not _is_same_time(before.expires_at, changes.expires_at):
        settings["expires_at"] = _parse_expiry(services, changes.expires_at)
    return settings


def _parse_networks(allowed_ips: list[str]) -> list[Network] | None:
    return [ip_network(network) for network in dict.fromkeys(allowed_ips)] or None


def _parse_expiry(services: Services, expires_at: str) -> datetime | None:
    if not expires_at:
        return None
    moment = datetime.fromisoformat(expires_at)
    if moment <= services.clock():
        raise invalid_field("expires_at", "must be in the future")
    return moment


def _is_same_time(stored: datetime | None, value: str) -> bool:
    """Return whether the given time equals the stored time, at the precision of responses.

    A client may send the stored time back unchanged, even if it is in the past.
    """
    if stored is None or not value:
        return False
    return clock.format_rfc3339(stored) == clock.format_rfc3339(datetime.fromisoformat(value))


async def _lock_key(tx: asyncpg.Connection, services: Services, key_id: int) -> ApiKey:
    key = await services.authenticator.api_keys.lock(tx, key_id)
    if key is None:
        raise model.not_found()
    return key


async def _record_audit_entry(
    tx: asyncpg.Connection,
    services: Services,
    actor: Actor,
    action: str,
    key_id: int,
    changes: trail.Changes | None = None,
) -> None:
    await trail.record(
        tx,
        actor,
        event=f"api_key.{action}",
        resource_type="api_key",
        resource_id=ids.encode(ids.KEY, key_id),
        changes=changes,
    )
