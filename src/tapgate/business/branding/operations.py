"""The current branding, cached per process, and its changes."""

from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Final
from weakref import WeakKeyDictionary

import asyncpg

from tapgate.auth.actors import Actor
from tapgate.business.branding import queries
from tapgate.business.branding.model import DEFAULT_COLOR, Branding
from tapgate.core.images import ImageError, decode_data_uri
from tapgate.core.settings import Settings
from tapgate.events.audit.trail import AuditTrail
from tapgate.runtime.cost_bound_cache import CostBoundCache
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate.runtime.thread_pool import BoundedThreadPool
from tapgate_client.errors import ApiError, invalid_field
from tapgate_client.schemas.branding import BrandingUpdate

MAX_LOGO_PIXELS: Final = 1024

_CACHE_SECONDS: Final = 5.0
_TEXT_FIELDS: Final = ("name", "color", "support_contact", "statement_header")
_trail: Final = AuditTrail("branding")
_caches: WeakKeyDictionary[Database, CostBoundCache[Branding]] = WeakKeyDictionary()
#: Decoding an image would block the event loop.
_threads: Final = BoundedThreadPool("logos", threads=1, max_pending=4)


async def get_branding(
    database: Database, settings: Settings, now: datetime, *, fresh: bool = False
) -> Branding:
    """Return the effective branding, which may be a few seconds old unless it must be fresh."""
    cache = _caches.get(database)
    if cache is None:
        cache = _caches[database] = CostBoundCache(_CACHE_SECONDS)

    return await cache.get(now, partial(load_branding, database, settings), fresh=fresh)


async def load_branding(reader: Database | Transaction, settings: Settings) -> Branding:
    return _build(settings, await queries.find(reader))


async def get_branding_or_default(
    database: Database, settings: Settings, now: datetime
) -> Branding:
    """Return the branding, or the default if the database is not available."""
    try:
        return await get_branding(database, settings, now)
    except ApiError:
        return build_default_branding(settings)


async def decode_logo(data_uri: str | None) -> bytes | None:
    """Decode and re-encode a logo, outside of any database transaction."""
    return await _threads.run(_decode_logo, data_uri) if data_uri else None


async def update(
    tx: Transaction, actor: Actor, changes: BrandingUpdate, logo: bytes | None
) -> None:
    """Change the given fields. An empty text resets a field to its default."""
    await queries.lock(tx)
    row = await queries.find(tx)
    before = {name: None if row is None else row[name] for name in (*_TEXT_FIELDS, "logo")}
    after = dict(before)
    for name in _TEXT_FIELDS:
        value = getattr(changes, name)
        if value is not None:
            after[name] = value or None
    if changes.logo is not None:
        after["logo"] = logo
    differences = {
        name: (_describe(before[name]), _describe(after[name]))
        for name in before
        if before[name] != after[name]
    }
    if differences:
        await queries.save(tx, after)
        await _trail.record(tx, actor, None, "updated", changes=differences)


def build_default_branding(settings: Settings) -> Branding:
    """Return the branding without the stored values."""
    return _build(settings, None)


def _build(settings: Settings, row: asyncpg.Record | None) -> Branding:
    values = {} if row is None else dict(row)
    return Branding(
        name=values.get("name") or settings.operator_name,
        color=values.get("color") or DEFAULT_COLOR,
        support_contact=values.get("support_contact") or settings.support_contact,
        statement_header=values.get("statement_header"),
        logo=values.get("logo"),
        updated_at=values.get("updated_at"),
    )


def _decode_logo(data_uri: str) -> bytes:
    try:
        image = decode_data_uri(data_uri, max_side=MAX_LOGO_PIXELS)
    except ImageError as error:
        raise invalid_field("logo", str(error)) from None
    return image.content


def _describe(value: str | bytes | None) -> str | None:
    """Return a value for the audit log. A logo is described by its hash."""
    return f"PNG {sha256(value).hexdigest()[:16]}" if isinstance(value, bytes) else value
