"""Messages sent to a subscriber's phone, with their delivery status."""

from typing import Any

from tapgate import clock, ids
from tapgate.api.endpoint import Access, Endpoints
from tapgate.api.request_context import RequestContext
from tapgate.auth.disclosure import is_hidden
from tapgate.errors import Code
from tapgate.notifications import message_statuses
from tapgate.schemas.pagination import Page, paginate
from tapgate.schemas.subscribers import MessageFilters, MessageRecord
from tapgate.subscribers import queries
from tapgate.subscribers.codes import ONE_TIME_CODE_TEMPLATE
from tapgate.subscribers.model import decode_subscriber_id

endpoints = Endpoints("Subscribers")


@endpoints.get(
    "/api/v1/subscribers/{id}/messages",
    access=Access(roles="ACSF"),
    errors=(Code.SUBSCRIBER_NOT_FOUND,),
)
async def list_subscriber_messages(
    request: RequestContext, id: str, query: MessageFilters
) -> Page[MessageRecord]:
    """List the messages sent to a subscriber.

    Newest first, without the text. Messages from before the phone number was assigned to the
    subscriber are not listed, because they may be for a previous owner of the number.

    `status` is `queued`, `sent`, `delivered`, `read` or `failed`. If it is `failed`, `error_code`
    is the provider's or messenger's error code, or `expired` for a message not sent in time. If
    the subscriber is restricted and the caller may not access the subscriber, only one-time codes
    are listed, so that staff can see whether a code arrived.
    """
    services = request.services
    subscriber = await queries.get(services.database, decode_subscriber_id(id))
    template = query.template
    if subscriber.restricted and await is_hidden(
        services.database, request.caller, services.clock(), subscriber.id
    ):
        if template not in (None, ONE_TIME_CODE_TEMPLATE):
            return Page(data=[], has_more=False, next_cursor=None)
        template = ONE_TIME_CODE_TEMPLATE
    rows = await message_statuses.list_page(
        services.database,
        subscriber.phone_number,
        since=await queries.get_phone_number_owned_since(services.database, subscriber.id),
        template=template,
        before=query.before_id,
        limit=query.limit + 1,
    )
    return paginate(rows, query.limit, key=lambda row: int(row["id"]), to_record=_to_record)


def _to_record(row: Any) -> MessageRecord:
    updated_at = row["delivery_at"]
    return MessageRecord(
        message_id=ids.encode(ids.MESSAGE, row["id"]),
        template=row["template"],
        language=row["language"],
        status=row["status"],
        error_code=row["error_code"],
        created_at=clock.format_rfc3339(row["created_at"]),
        updated_at=None if updated_at is None else clock.format_rfc3339(updated_at),
    )
