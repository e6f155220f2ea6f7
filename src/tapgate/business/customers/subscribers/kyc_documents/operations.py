"""Operations on KYC documents: add a document and view its image."""

import asyncio
import math
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tapgate.auth.actors import Actor
from tapgate.auth.disclosure import Audience, Reader
from tapgate.business.customers.subscribers import queries as subscribers
from tapgate.business.customers.subscribers.kyc_documents import queries
from tapgate.business.customers.subscribers.kyc_documents.model import (
    Document,
    build_seal_context,
    encode_document_id,
)
from tapgate.business.customers.subscribers.model import Subscriber, require_not_closed
from tapgate.business.customers.subscribers.operations import save
from tapgate.core.images import EncodedImage, ImageError, decode_data_uri
from tapgate.core.vault import Vault
from tapgate.events.audit.trail import AuditTrail
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate.runtime.thread_pool import BoundedThreadPool
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.subscribers import KycStatus

MAX_PENDING_IMAGES: Final = 16
#: Two threads only: a large image takes about 300 MB of memory while it is processed, and about
#: 16 MB while it is queued.
image_threads: Final = BoundedThreadPool("images", threads=2, max_pending=MAX_PENDING_IMAGES)

MAX_UNDECIDED_PER_TYPE: Final = 4
MAX_PER_DAY: Final = 20

_DAY: Final = timedelta(days=1)
_LIMIT_MESSAGES: Final = {
    "undecided_per_type": "{} documents of this type are already waiting for a decision.",
    "per_day": "At most {} documents can be uploaded in 24 hours. Try again later.",
}

_trail = AuditTrail("subscriber")


async def require_within_limits(
    database: Database, caller: Audience, now: datetime, subscriber_id: int, document_type: str
) -> None:
    """Reject an upload over a limit before the image is decoded, which is expensive.

    `add` checks the limits again under the subscriber's lock.
    """
    error = await _get_limit_error(database, subscriber_id, document_type, now)
    if error is not None:
        require_not_closed(await subscribers.get_accessible(database, caller, now, subscriber_id))
        raise error


async def _get_limit_error(
    reader: Reader, subscriber_id: int, document_type: str, now: datetime
) -> ApiError | None:
    """Return the error if another document would exceed a limit, otherwise None.

    The result is reliable only while the caller holds the subscriber's lock.
    """
    undecided = await queries.count_undecided(reader, subscriber_id, document_type)
    if undecided >= MAX_UNDECIDED_PER_TYPE:
        # A KYC decision resets the count. Its time is unknown, so `Retry-After` is one day.
        return _build_limit_error("undecided_per_type", MAX_UNDECIDED_PER_TYPE, _DAY)
    oldest = await queries.get_nth_newest_upload_time(reader, subscriber_id, MAX_PER_DAY)
    if oldest is not None and oldest + _DAY > now:
        return _build_limit_error("per_day", MAX_PER_DAY, oldest + _DAY - now)
    return None


def _build_limit_error(limit: str, maximum: int, wait: timedelta) -> ApiError:
    seconds = min(_DAY, max(wait, timedelta(seconds=1))).total_seconds()
    return ApiError(
        Code.RATE_LIMITED,
        _LIMIT_MESSAGES[limit].format(maximum),
        details={"limit": limit, "maximum": maximum},
        headers={"Retry-After": str(math.ceil(seconds))},
    )


async def seal_image(image: str, document_id: int, *, vault: Vault) -> EncodedImage:
    """Decode and encrypt an uploaded image, outside of any database transaction."""
    return await image_threads.run(_decode_and_seal, image, document_id, vault)


def _decode_and_seal(image: str, document_id: int, vault: Vault) -> EncodedImage:
    try:
        decoded = decode_data_uri(image)
    except ImageError as error:
        raise invalid_field("image", str(error)) from None
    sealed = vault.seal(decoded.content, build_seal_context(document_id))
    return EncodedImage(decoded.media_type, sealed)


async def add(
    tx: Transaction, actor: Actor, subscriber_id: int, document: Document, sealed: EncodedImage
) -> Subscriber:
    """Store a document, set the KYC status to `PENDING`, and return the subscriber."""
    before = await subscribers.lock_editable(tx, actor, subscriber_id)
    error = await _get_limit_error(tx, subscriber_id, document.document_type, tx.now())
    if error is not None:
        raise error
    await queries.add(tx, document, subscriber_id, sealed)
    changes = {str(document.document_type): (None, encode_document_id(document.id))}
    await _trail.record(tx, actor, before.public_id, "kyc_document_added", changes=changes)
    after = msgspec.structs.replace(
        before,
        kyc_status=KycStatus.PENDING,
        kyc_pending_since=before.kyc_pending_since or tx.now(),
    )
    if after == before:
        return before
    return await save(tx, actor, before, after, action="updated")


async def view_sealed_image(
    tx: Transaction, actor: Actor, subscriber_id: int, document_id: int
) -> EncodedImage:
    """Return a document's encrypted image, and record the access in the audit log."""
    subscriber = await subscribers.get_accessible(tx, actor.principal, tx.now(), subscriber_id)
    sealed = await queries.get_sealed_image(tx, subscriber_id, document_id)
    reason = encode_document_id(document_id)
    await _trail.record(tx, actor, subscriber.public_id, "kyc_document_seen", reason=reason)
    return sealed


async def unseal_image(sealed: EncodedImage, document_id: int, *, vault: Vault) -> EncodedImage:
    context = build_seal_context(document_id)
    return EncodedImage(
        sealed.media_type, await asyncio.to_thread(vault.open, sealed.content, context)
    )
