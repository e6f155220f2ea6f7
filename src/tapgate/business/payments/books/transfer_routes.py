"""Endpoints for staff: transfers to other books, and decisions about those that are refused."""

from functools import partial

from tapgate.business.payments.books import transfers
from tapgate.business.payments.transactions.money_requests import format_amount
from tapgate.core.pagination import paginate
from tapgate.core.records import TransactionId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import Code
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.books import (
    BookTransferFilters,
    BookTransferRecord,
    BookTransferReturn,
)
from tapgate_client.schemas.pagination import Page

endpoints = Endpoints(
    "Books",
    "/api/v1/books/transfers",
    access=Access(roles="AF"),
    objects=ObjectAccess.ANY,
    owners=NEVER,
)


@endpoints.get("")
async def list_transfers(
    request: RequestContext, query: BookTransferFilters
) -> Page[BookTransferRecord]:
    """List transfers to customers of other books, newest first unless `order` says otherwise.

    A `pending` transfer is repeated until the other book has decided. A `stopped` one was refused
    for a day, and waits for a decision: retry or return.
    """
    rows = await transfers.list_page(request.services.database, query)
    return paginate(rows, query, partial(_to_record, request))


@endpoints.get("/{id}")
async def get_transfer(request: RequestContext, id: TransactionId) -> BookTransferRecord:
    """Get a transfer to a customer of another book, by the transaction ID."""
    return _to_record(request, await transfers.get(request.services.database, id))


@endpoints.post("/{id}/retry", errors=(Code.ALREADY_RESOLVED,), unguarded=Unguarded.OWN_MONEY)
async def retry_transfer(
    request: RequestContext, tx: Transaction, id: TransactionId
) -> BookTransferRecord:
    """Repeat a transfer now.

    The other book credits it at most once. If it still refuses the transfer, it is repeated for
    another day.
    """
    return _to_record(request, await transfers.retry(tx, request.actor, id))


async def _describe_return(request: GuardedRequest, id: int, body: BookTransferReturn) -> Proposal:
    transfer = await transfers.get(request.services.database, id)
    # Not left to the operation: a review that ends in between makes the transfer returnable.
    transfers.require_returnable(transfer, request.services.book_peers, body)
    amount = format_amount(request, transfer.amount)
    summary = f"Return {amount} that the book {transfer.book} has not credited"
    if body.without_confirmation:
        summary = f"Return {amount} without confirmation by the book {transfer.book}"
    return Proposal(
        operations=(Operation.REVERSALS,),
        summary=summary,
        resource_id=transfer.public_id,
        amount=transfer.amount,
    )


@endpoints.post(
    "/{id}/return",
    errors=(Code.ALREADY_RESOLVED, Code.NOT_REVERSIBLE),
    guard=Guard(_describe_return, Operation.REVERSALS),
    step_up=True,
)
async def return_transfer(
    request: GuardedRequest, tx: Transaction, id: TransactionId, body: BookTransferReturn
) -> BookTransferRecord:
    """Return a transfer that the other book has not credited.

    First, the other book must confirm that it will never credit the transfer. Then the
    amount and the fee go back to the sender, who gets a message. If the other book has credited the
    transfer, it ends as `delivered`, and no money moves. A return cannot be withdrawn.

    A book that was removed from `TAPGATE_BOOK_PEERS` cannot confirm anything. With
    `without_confirmation`, a `stopped` transfer to it is returned at once. Compare both books
    first: if the other book has credited the recipient, the money is paid twice.
    """
    peers = request.services.book_peers
    transfer = await transfers.request_return(tx, request.actor, peers, id, body)
    return _to_record(request, transfer)


def _to_record(request: GuardedRequest, transfer: transfers.StoredTransfer) -> BookTransferRecord:
    return transfers.to_record(transfer, request.services.book_peers)
