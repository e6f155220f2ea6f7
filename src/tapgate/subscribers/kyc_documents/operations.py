"""What can happen to a KYC document: added, looked at."""

import asyncio
from typing import Final

import msgspec

from tapgate.edge.request_context import RequestContext
from tapgate.errors import invalid_field
from tapgate.images import EncodedImage, ImageError, decode_data_uri
from tapgate.service.thread_pool import BoundedThreadPool
from tapgate.subscribers import queries as subscribers
from tapgate.subscribers.kyc_documents import limits, queries
from tapgate.subscribers.kyc_documents.model import Document, NewDocument, public_id, seal_context
from tapgate.subscribers.model import Subscriber
from tapgate.subscribers.operations import save
from tapgate.subscribers.restriction import require_changeable, require_open
from tapgate.subscribers.trail import record

MOST_PICTURES: Final = 16
#: Two at once, however many are sent: a large picture needs some 300 MB while it is worked on, and
#: some 16 MB while it waits.
pictures: Final = BoundedThreadPool("pictures", at_once=2, most=MOST_PICTURES)


async def add(
    call: RequestContext, subscriber_id: int, new: NewDocument
) -> tuple[Document, Subscriber]:
    """Store a document; it needs a KYC decision, so the status becomes pending."""
    services = call.services
    await _require_room_early(call, subscriber_id, new.document_type)
    document = Document(services.new_id(), new.document_type, services.clock())
    sealed = await pictures.run(_read_and_seal, call, document.id, new.image)
    async with services.database.transaction() as tx:
        before = await subscribers.lock(tx, subscriber_id)
        await require_changeable(tx, call, before)
        refusal = await limits.refusal(tx, subscriber_id, new.document_type, services.clock())
        if refusal is not None:
            raise refusal
        await queries.add(tx, document, subscriber_id, sealed)
        changes = {new.document_type: (None, public_id(document.id))}
        await record(tx, call, subscriber_id, "kyc_document_added", changes=changes)
        after = msgspec.structs.replace(before, kyc_status="PENDING")
        if after != before:
            after = await save(tx, call, before, after, action="updated")
    return document, after


async def _require_room_early(call: RequestContext, subscriber_id: int, document_type: str) -> None:
    """Refuse before the picture is decoded, which is expensive. Checked again under the lock."""
    database = call.services.database
    refusal = await limits.refusal(database, subscriber_id, document_type, call.services.clock())
    if refusal is not None:
        await require_changeable(database, call, await subscribers.get(database, subscriber_id))
        raise refusal


async def look_at(call: RequestContext, subscriber_id: int, document_id: int) -> EncodedImage:
    """Who looked at it is in the audit log."""
    async with call.services.database.transaction() as tx:
        subscriber = await subscribers.get(tx, subscriber_id)
        await require_open(tx, call, subscriber.id, restricted=subscriber.restricted)
        sealed = await queries.get_sealed(tx, subscriber_id, document_id)
        reason = public_id(document_id)
        await record(tx, call, subscriber_id, "kyc_document_seen", reason=reason)
    context = seal_context(document_id)
    content = await asyncio.to_thread(call.services.vault.open, sealed.content, context)
    return EncodedImage(sealed.media_type, content)


def _read_and_seal(call: RequestContext, document_id: int, image: str) -> EncodedImage:
    try:
        picture = decode_data_uri(image)
    except ImageError as error:
        raise invalid_field("image", str(error)) from None
    sealed = call.services.vault.seal(picture.content, seal_context(document_id))
    return EncodedImage(picture.media_type, sealed)
