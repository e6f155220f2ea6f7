"""Operations on KYC documents: add a document and view its image."""

import asyncio
from typing import Final

import msgspec

from tapgate.api.request_context import RequestContext
from tapgate.errors import invalid_field
from tapgate.images import EncodedImage, ImageError, decode_data_uri
from tapgate.runtime.thread_pool import BoundedThreadPool
from tapgate.schemas.subscribers import KycStatus, NewDocument
from tapgate.subscribers import queries as subscribers
from tapgate.subscribers.audit_trail import record_audit_entry
from tapgate.subscribers.kyc_documents import limits, queries
from tapgate.subscribers.kyc_documents.model import (
    Document,
    build_seal_context,
    encode_document_id,
)
from tapgate.subscribers.model import Subscriber
from tapgate.subscribers.operations import save
from tapgate.subscribers.restriction import require_editable

MAX_PENDING_IMAGES: Final = 16
#: Two threads only: a large image takes about 300 MB of memory while it is processed, and about
#: 16 MB while it is queued.
image_threads: Final = BoundedThreadPool("images", threads=2, max_pending=MAX_PENDING_IMAGES)


async def add(
    request: RequestContext, subscriber_id: int, new: NewDocument
) -> tuple[Document, Subscriber]:
    """Store a document, set the KYC status to `PENDING`, and return document and subscriber."""
    services = request.services
    await _precheck_limits(request, subscriber_id, new.document_type)
    document = Document(services.new_id(), new.document_type, services.clock())
    sealed = await image_threads.run(_decode_and_seal, request, document.id, new.image)
    async with services.transaction() as tx:
        before = await subscribers.lock(tx, subscriber_id)
        await require_editable(tx, request.caller, request.services.clock(), before)
        error = await limits.get_limit_error(tx, subscriber_id, new.document_type, services.clock())
        if error is not None:
            raise error
        await queries.add(tx, document, subscriber_id, sealed)
        changes = {new.document_type: (None, encode_document_id(document.id))}
        await record_audit_entry(tx, request, subscriber_id, "kyc_document_added", changes=changes)
        after = msgspec.structs.replace(before, kyc_status=KycStatus.PENDING)
        if after != before:
            after = await save(tx, request, before, after, action="updated")
    return document, after


async def _precheck_limits(request: RequestContext, subscriber_id: int, document_type: str) -> None:
    """Reject an upload over a limit before the image is decoded, which is expensive.

    `add` checks the limits again under the subscriber's lock.
    """
    database = request.services.database
    error = await limits.get_limit_error(
        database, subscriber_id, document_type, request.services.clock()
    )
    if error is not None:
        await require_editable(
            database,
            request.caller,
            request.services.clock(),
            await subscribers.get(database, subscriber_id),
        )
        raise error


async def view_image(request: RequestContext, subscriber_id: int, document_id: int) -> EncodedImage:
    """Return the decrypted image of a document, and record the access in the audit log."""
    async with request.services.transaction() as tx:
        await subscribers.get_accessible(
            tx, request.caller, request.services.clock(), subscriber_id
        )
        sealed = await queries.get_sealed_image(tx, subscriber_id, document_id)
        reason = encode_document_id(document_id)
        await record_audit_entry(tx, request, subscriber_id, "kyc_document_seen", reason=reason)
    context = build_seal_context(document_id)
    content = await asyncio.to_thread(request.services.vault.open, sealed.content, context)
    return EncodedImage(sealed.media_type, content)


def _decode_and_seal(request: RequestContext, document_id: int, image: str) -> EncodedImage:
    try:
        decoded = decode_data_uri(image)
    except ImageError as error:
        raise invalid_field("image", str(error)) from None
    sealed = request.services.vault.seal(decoded.content, build_seal_context(document_id))
    return EncodedImage(decoded.media_type, sealed)
