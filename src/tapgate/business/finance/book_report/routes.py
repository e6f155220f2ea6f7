"""Endpoints for the consolidated report over several books."""

from tapgate.business.finance.book_report import report
from tapgate.http.api.access import Access
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.books import BookPosition, BookReport

endpoints = Endpoints("Books", "/api/v1/books", owners=NEVER)


@endpoints.get(
    "/position",
    access=Access(hmac="partner"),
    heavy=True,
    errors=(Code.NOT_FOUND,),
    objects=ObjectAccess.PARTNER,
)
async def get_position(request: RequestContext) -> BookPosition:
    """Get this book's balances by account kind, and what it owes the book that asks.

    Only a partner that represents another book can do this. `balance` is credits minus debits.
    `in_transit` is what this book has debited for transfers to the other book that are not final
    yet.
    """
    services = request.services
    code = services.book_peers.find_code(request.principal.partner_id)
    if code is None:
        raise ApiError(Code.NOT_FOUND, "The partner does not represent a book.")
    return await report.load_position(
        services.database,
        services.book_peers,
        code,
        currency=services.settings.currency,
        now=services.clock(),
    )


@endpoints.get("/report", access=Access(roles="AF"), heavy=True, objects=ObjectAccess.NO_OBJECT)
async def get_book_report(request: RequestContext) -> BookReport:
    """Get the consolidated balances of this book and all others.

    `accounts` adds up the balances of all books that respond, by currency and account kind, as
    credits minus debits; their sum is zero. The clearing accounts of the books for each other
    cancel out, except for transfers in transit. In each row, `difference` is what both books owe
    each other minus what is in transit: zero, unless a transfer was delivered between the two
    readings, and null if the other book has another currency. A book that does not respond has null
    figures: then `is_complete` is false, and `missing_books` names it. `number_conflicts` has the
    newest 100 of `GET /api/v1/books/number-conflicts`.
    """
    services = request.services
    return await report.build_report(
        services.database,
        services.book_peers,
        currency=services.settings.currency,
        now=services.clock(),
    )
