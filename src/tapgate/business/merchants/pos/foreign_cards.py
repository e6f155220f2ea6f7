"""Cards of other books at terminals: a clear error instead of a card that nobody knows."""

from typing import Final

from tapgate.business.payments.books import directory
from tapgate.http.api.request_context import RequestContext
from tapgate_client.errors import ApiError, Code

#: Errors for a card that is unknown here, or whose customer was closed here and moved.
_EXPLAINED_CODES: Final = frozenset(
    {Code.CARD_NOT_FOUND, Code.CARD_NOT_ACTIVE, Code.SUBSCRIBER_BLOCKED}
)


async def explain(request: RequestContext, serial: str | None, error: ApiError) -> ApiError:
    """Return the error for a card that cannot pay here, or `CARD_IN_OTHER_BOOK`."""
    if error.code not in _EXPLAINED_CODES or serial is None:
        return error
    return await _find_error(request, serial) or error


async def require_own(request: RequestContext, serial: str) -> None:
    """Raise `CARD_IN_OTHER_BOOK` for a card that is in use only in another book."""
    error = await _find_error(request, serial)
    if error is not None:
        raise error


async def _find_error(request: RequestContext, serial: str) -> ApiError | None:
    """Return an error that tells the terminal in which other book the card can pay, or None.

    If another book does not respond, the card is not explained: a terminal must not wait for it.
    """
    services = request.services
    peers = services.book_peers
    if await directory.has_own_card(services.database, peers, serial):
        return None
    try:
        customer = await peers.find_customer(("card_serial", serial))
    except ApiError:
        return None
    if customer is None:
        return None
    return ApiError(Code.CARD_IN_OTHER_BOOK, details={"book": customer.book})
