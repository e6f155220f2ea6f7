"""Endpoints between books: customer lookup, and transfers from customers of another book.

Phone numbers that two books have are listed for staff.
"""

from tapgate.business.payments.books import directory, incoming, number_conflicts
from tapgate.business.payments.transactions.money_requests import MoneyResult
from tapgate.core.pagination import paginate
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Unguarded
from tapgate.http.api.idempotency import require_idempotency_key
from tapgate.http.api.notice_declarations import Unnoticed
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.ledger.commands import Command
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.books import (
    BookCustomer,
    BookLookup,
    BookNumberConflict,
    BookTransfer,
    BookTransferCancellation,
    BookTransferReceipt,
)
from tapgate_client.schemas.pagination import Page, PageQuery

endpoints = Endpoints("Books", "/api/v1/books", owners=NEVER)


@endpoints.post(
    "/lookup",
    access=Access(scope="subscribers:read", service=True, hmac="partner"),
    errors=(Code.SUBSCRIBER_NOT_FOUND, Code.CARD_NOT_FOUND),
    unguarded=Unguarded.NO_EFFECT,
    objects=ObjectAccess.ANY,
    effect="reads",
)
async def look_up(request: RequestContext, body: BookLookup) -> BookCustomer:
    """Get the book in which a customer lives, by phone number or card.

    A partner that represents another book gets only customers of this book. For every other caller,
    the other books are asked for a customer whom this book does not have.
    """
    services = request.services
    field = "phone_number" if body.card_serial is None else "card_serial"
    key = (field, body.phone_number or body.card_serial or "")
    is_peer = request.principal.kind == "partner"
    if is_peer:
        _require_peer(request)
    customer = await directory.find_own(services.database, services.book_peers, key)
    if customer is None and not is_peer:
        customer = await services.book_peers.find_customer(key)
    if customer is None:
        raise ApiError(
            Code.SUBSCRIBER_NOT_FOUND if field == "phone_number" else Code.CARD_NOT_FOUND
        )
    return customer


@endpoints.post(
    "/transfers",
    access=Access(hmac="partner"),
    moves_money=True,
    requires=(require_idempotency_key,),
    errors=(
        Code.SUBSCRIBER_NOT_FOUND,
        Code.SUBSCRIBER_BLOCKED,
        Code.PARTNER_SUSPENDED,
        Code.COMPLIANCE_REJECTED,
        Code.INSUFFICIENT_FUNDS,
        Code.MAX_BALANCE_EXCEEDED,
    ),
    objects=ObjectAccess.PARTNER,
    unnoticed=Unnoticed.RECEIPT,
)
async def receive_transfer(
    request: RequestContext, body: BookTransfer
) -> Reply[BookTransferReceipt]:
    """Credit a transfer from a customer of another book.

    Only a partner that represents another book can do this. `request_id` is the ID of the
    transaction there. The money comes from the partner's account, within its overdraft limit, and
    the recipient's limits and the compliance rules of this book apply.

    The refusal is final if a decline is replayed, or if the recipient does not exist.
    The other book then returns the money to the sender. After a review, a replay has the outcome:
    `completed`, or the decline.
    """
    return await _execute(request, incoming.build_credit(request, _require_peer(request), body))


@endpoints.post(
    "/transfers/cancel",
    access=Access(hmac="partner"),
    errors=(
        Code.TRANSFER_CANCELLED,
        Code.SUBSCRIBER_NOT_FOUND,
        Code.DUPLICATE_REQUEST,
        Code.DUPLICATE_REFERENCE,
    ),
    objects=ObjectAccess.PARTNER,
)
async def cancel_transfer(
    request: RequestContext, body: BookTransferCancellation
) -> Reply[BookTransferReceipt]:
    """Refuse a transfer permanently, unless it was decided before.

    Only a partner that represents another book can do this, before it returns the money to the
    sender. The response is 409 `TRANSFER_CANCELLED`, or the earlier decline: the transfer was not
    credited and never will be, however late a request for it arrives. If it was credited or is
    under review, nothing changes, and the response is its receipt.
    """
    command = incoming.build_cancellation(request, _require_peer(request), body)
    return await _execute(request, command)


@endpoints.get("/number-conflicts", access=Access(roles="AF"), objects=ObjectAccess.ANY)
async def list_number_conflicts(
    request: RequestContext, query: PageQuery
) -> Page[BookNumberConflict]:
    """List customers of this book whose phone number another book has too, newest first.

    Ask both customers, and change the number or close the customer in one of the books. The
    book that registered the number later lists the conflict, or both if they registered it at the
    same time. It is compared again about every 15 minutes, until it ends.
    """
    services = request.services
    rows = await number_conflicts.list_page(services.database, services.book_peers, query)
    return paginate(rows, query, number_conflicts.to_record)


async def _execute(request: RequestContext, command: Command) -> Reply[BookTransferReceipt]:
    services = request.services
    outcome = await incoming.execute(services.ledger, services.database, command)
    result = MoneyResult(outcome, services.settings.currency)
    return result.build_reply(BookTransferReceipt, "Transfer credited")


def _require_peer(request: RequestContext) -> str:
    """Return the code of the book whose partner signed the request, or raise FORBIDDEN."""
    code = request.services.book_peers.find_code(request.principal.partner_id)
    if code is None:
        raise ApiError(Code.FORBIDDEN, details={"required": ["a partner that represents a book"]})
    return code
