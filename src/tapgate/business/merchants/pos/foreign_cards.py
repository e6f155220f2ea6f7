"""Cards of other books at terminals: a clear error instead of a card that nobody knows."""

from tapgate.http.api.request_context import RequestContext
from tapgate_client.errors import ApiError, Code


async def explain(request: RequestContext, serial: str | None, error: ApiError) -> ApiError:
    """Return the error for a card that does not exist here, or `CARD_IN_OTHER_BOOK`.

    The terminal shows the customer in which book the card can pay. If another book does not
    respond, the card stays unknown: a terminal must not wait for it.
    """
    peers = request.services.book_peers
    if error.code != Code.CARD_NOT_FOUND or serial is None or not peers.codes:
        return error
    try:
        customer = await peers.find_customer(("card_serial", serial))
    except ApiError:
        return error
    if customer is None:
        return error
    return ApiError(Code.CARD_IN_OTHER_BOOK, details={"book": customer.book})
