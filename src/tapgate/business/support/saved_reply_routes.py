"""Saved reply endpoints."""

from tapgate.business.support import saved_replies
from tapgate.business.support.saved_replies import to_record
from tapgate.core.records import SavedReplyId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Unguarded
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import Code
from tapgate_client.schemas.saved_replies import (
    NewSavedReply,
    SavedReplies,
    SavedReplyRecord,
    SavedReplyUpdate,
)

endpoints = Endpoints(
    "Support",
    "/api/v1/support/saved-replies",
    access=Access(roles="AS"),
    objects=ObjectAccess.ANY,
    owners=NEVER,
)


@endpoints.get("")
async def list_saved_replies(request: RequestContext) -> SavedReplies:
    """List the saved replies, in their order.

    Support staff insert a saved reply into a reply and can change it there. `texts` has a text per
    customer language; English replaces a missing text.
    """
    replies = await saved_replies.list_all(request.services.database)
    return SavedReplies(data=[to_record(reply) for reply in replies])


@endpoints.post(
    "",
    status=201,
    objects=ObjectAccess.NO_OBJECT,
    unguarded=Unguarded.NO_EFFECT,
    errors=(Code.DUPLICATE_REFERENCE,),
)
async def create_saved_reply(
    request: RequestContext, tx: Transaction, body: NewSavedReply
) -> SavedReplyRecord:
    """Create a saved reply.

    Without `position`, it is the last one. A label that another saved reply has, in upper or lower
    case, gets 409 `DUPLICATE_REFERENCE`. At most 50 saved replies can exist.
    """
    return to_record(await saved_replies.create(tx, request.actor, body))


@endpoints.get("/{id}")
async def get_saved_reply(request: RequestContext, id: SavedReplyId) -> SavedReplyRecord:
    """Get a saved reply."""
    return to_record(await saved_replies.get(request.services.database, id))


@endpoints.put("/{id}", unguarded=Unguarded.NO_EFFECT, errors=(Code.DUPLICATE_REFERENCE,))
async def update_saved_reply(
    request: RequestContext, tx: Transaction, id: SavedReplyId, body: SavedReplyUpdate
) -> SavedReplyRecord:
    """Update a saved reply.

    Absent fields keep their values. `texts` replaces the texts in all languages. `position` moves
    the reply; a position beyond the end is the last one.
    """
    return to_record(await saved_replies.update(tx, request.actor, id, body))


@endpoints.delete("/{id}", unguarded=Unguarded.NO_EFFECT)
async def delete_saved_reply(request: RequestContext, tx: Transaction, id: SavedReplyId) -> None:
    """Delete a saved reply. Replies that contain its text do not change."""
    await saved_replies.delete(tx, request.actor, id)
