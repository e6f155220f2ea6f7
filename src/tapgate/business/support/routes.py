"""Support request endpoints.

Requests of restricted subscribers are listed in masked form. Admins can reply to them after
verifying a one-time code.
"""

from collections.abc import Sequence

from tapgate.auth.disclosure import Subject, find_hidden_subjects
from tapgate.auth.owners import SUPPORT_REQUESTS
from tapgate.business.support import model, operations, queries
from tapgate.business.support.model import SupportRequest
from tapgate.core.pagination import paginate
from tapgate.core.records import SupportRequestId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Unguarded
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER, Binding, OwnerAccess
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import Code, invalid_field
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.support import (
    NewOwnerMessage,
    NewOwnerRequest,
    NewSupportMessage,
    SupportReply,
    SupportRequestFilters,
    SupportRequestRecord,
    SupportSummary,
)

endpoints = Endpoints(
    "Support", "/api/v1/support", access=Access(roles="AS"), objects=ObjectAccess.ANY, owners=NEVER
)

#: All users of owners ask support.
_OWNER_ROLES = "MKPG"
#: Messages of each request in a list.
_LISTED_MESSAGES = 10


async def _build_record(
    request: RequestContext, reader: Database | Transaction, row: SupportRequest
) -> SupportRequestRecord:
    messages = await queries.load_messages(reader, request.services.vault, [row.id])
    masked = row.id in await _find_masked(request, reader, [row])
    for_owner = request.owner_view is not None
    return model.to_record(row, messages.get(row.id, []), masked=masked, for_owner=for_owner)


async def _find_masked(
    request: RequestContext, reader: Database | Transaction, rows: Sequence[SupportRequest]
) -> set[int]:
    """Return the IDs of requests that concern a subscriber hidden from the caller."""
    subjects = {Subject("support", row.public_id): row.id for row in rows}
    hidden = await find_hidden_subjects(reader, request.caller, request.services.clock(), subjects)
    return {subjects[subject] for subject in hidden}


@endpoints.post(
    "/requests",
    access=Access(service=True),
    status=201,
    other_statuses=(200,),
    errors=(Code.REQUEST_NOT_FOUND,),
)
async def receive_support_message(
    request: RequestContext, tx: Transaction, body: NewSupportMessage
) -> Reply[SupportRequestRecord]:
    """Pass a customer's message to support.

    Opens a support request (201). If the phone number already has a request that is not closed,
    the message is appended to it, the request is `open` again and the response status is 200.
    With `append_only`, no request is opened: without one that is not closed, the response is 404.
    A message with the `message_id` of an earlier one is not stored again and gets the same status.
    """
    row, is_new = await operations.receive(tx, request.actor, body, vault=request.services.vault)
    return Reply(await _build_record(request, tx, row), status=201 if is_new else 200)


@endpoints.post(
    "/owner-requests",
    access=Access(owners=True),
    status=201,
    owners=OwnerAccess(
        binding=Binding.OWNER, roles=_OWNER_ROLES, key_roles="", while_suspended=True
    ),
    errors=(Code.RATE_LIMITED,),
)
async def ask_support(
    request: RequestContext, tx: Transaction, body: NewOwnerRequest
) -> SupportRequestRecord:
    """Ask support as a user of a processor, partner or agent.

    Opens a support request, also while the owner is suspended. An owner has at most 20 requests
    that are not closed.
    """
    assert request.owner_view is not None
    row = await operations.open_for_owner(
        tx, request.actor, request.owner_view, body, vault=request.services.vault
    )
    return await _build_record(request, tx, row)


@endpoints.post(
    "/requests/{id}/messages",
    access=Access(owners=True),
    owners=OwnerAccess(
        binding=Binding.ROW,
        roles=_OWNER_ROLES,
        key_roles="",
        rows=SUPPORT_REQUESTS,
        while_suspended=True,
    ),
    errors=(Code.ALREADY_RESOLVED, Code.RATE_LIMITED),
)
async def add_support_message(
    request: RequestContext, tx: Transaction, id: SupportRequestId, body: NewOwnerMessage
) -> SupportRequestRecord:
    """Add a message to an own support request, which becomes `open` again."""
    row = await operations.append_for_owner(
        tx, request.actor, id, body.text, vault=request.services.vault
    )
    return await _build_record(request, tx, row)


@endpoints.get(
    "/requests",
    owners=OwnerAccess(
        binding=Binding.LIST, roles=_OWNER_ROLES, key_roles="", rows=SUPPORT_REQUESTS
    ),
)
async def list_support_requests(
    request: RequestContext, query: SupportRequestFilters
) -> Page[SupportRequestRecord]:
    """List support requests, newest first, or oldest first with `order=oldest`.

    `messages` contains the latest 10 messages of each request. A request that concerns a
    restricted subscriber has `masked: true` until the admin verifies a one-time code. The filter
    `phone_number` does not find masked requests.

    Users of a processor, partner or agent get its requests, a cashier only the cashier's own. They
    cannot filter by `assignee`, which they do not learn.
    """
    services, view = request.services, request.owner_view
    if view is not None and query.assignee is not None:
        raise invalid_field("assignee", "is a filter for staff")
    rows = await queries.list_page(services.database, query, request.caller, services.clock(), view)
    masked = await _find_masked(request, services.database, rows)
    messages = await queries.load_messages(
        services.database, services.vault, {row.id for row in rows} - masked, _LISTED_MESSAGES
    )
    return paginate(
        rows,
        query,
        lambda row: model.to_record(
            row, messages.get(row.id, []), masked=row.id in masked, for_owner=view is not None
        ),
    )


@endpoints.get("/summary", objects=ObjectAccess.NO_OBJECT)
async def get_support_summary(request: RequestContext) -> SupportSummary:
    """Get the number of open support requests, counted up to 100."""
    return SupportSummary(open=await queries.count_open(request.services.database))


@endpoints.get(
    "/requests/{id}",
    owners=OwnerAccess(
        binding=Binding.ROW, roles=_OWNER_ROLES, key_roles="", rows=SUPPORT_REQUESTS
    ),
)
async def get_support_request(
    request: RequestContext, id: SupportRequestId
) -> SupportRequestRecord:
    """Get a support request."""
    database = request.services.database
    return await _build_record(request, database, await queries.get(database, id))


@endpoints.post(
    "/requests/{id}/reply",
    errors=(Code.ALREADY_RESOLVED, Code.OTP_REQUIRED),
    unguarded=Unguarded.NO_EFFECT,
    objects=ObjectAccess.UNRESTRICTED,
)
async def reply_to_support_request(
    request: RequestContext, tx: Transaction, id: SupportRequestId, body: SupportReply
) -> SupportRequestRecord:
    """Reply to a support request.

    The reply is sent to the customer's phone: as text within 24 hours of the customer's last chat
    message, and as the template `support_reply` otherwise. Users of a processor, partner or agent
    read it in the portal. The request becomes `answered`. An unassigned request is assigned to the
    admin.
    """
    row = await operations.reply(tx, request.actor, id, body.text, vault=request.services.vault)
    return await _build_record(request, tx, row)


@endpoints.post(
    "/requests/{id}/assign",
    errors=(Code.ALREADY_RESOLVED,),
    unguarded=Unguarded.NO_EFFECT,
    effect="sets",
)
async def assign_support_request(
    request: RequestContext, tx: Transaction, id: SupportRequestId
) -> SupportRequestRecord:
    """Assign a support request to the calling admin."""
    row = await operations.assign(tx, request.actor, id)
    return await _build_record(request, tx, row)


@endpoints.post(
    "/requests/{id}/unassign",
    errors=(Code.ALREADY_RESOLVED,),
    unguarded=Unguarded.NO_EFFECT,
    effect="sets",
)
async def unassign_support_request(
    request: RequestContext, tx: Transaction, id: SupportRequestId
) -> SupportRequestRecord:
    """Unassign a support request."""
    row = await operations.unassign(tx, request.actor, id)
    return await _build_record(request, tx, row)


@endpoints.post(
    "/requests/{id}/close", errors=(Code.ALREADY_RESOLVED,), unguarded=Unguarded.NO_EFFECT
)
async def close_support_request(
    request: RequestContext, tx: Transaction, id: SupportRequestId
) -> SupportRequestRecord:
    """Close a support request.

    The customer gets the message `support_closed`. The next message to support opens a new request.
    """
    row = await operations.close(tx, request.actor, id, vault=request.services.vault)
    return await _build_record(request, tx, row)
