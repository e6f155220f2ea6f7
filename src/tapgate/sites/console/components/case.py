"""Case pages: a story and its evidence, with the customer's payments and cards beside it.

Alerts, support requests and KYC reviews extend `case.html`, and pass `case` to it.
"""

from typing import Any, Final

from tapgate.sites.console.components.related import gather_by_name, get_history
from tapgate.sites.console.page_request import PageRequest
from tapgate_client.errors import ApiError, Code

_PAYMENTS: Final = 6
_CARDS: Final = 3


async def load_case(request: PageRequest, subscriber_id: str | None) -> dict[str, Any] | None:
    """Return the customer with newest payments and cards.

    Return None without a customer, or if this admin has no access to a restricted one.
    """
    if subscriber_id is None:
        return None
    try:
        customer = await request.get("/api/v1/subscribers/{id}", id=subscriber_id)
    except ApiError as error:
        if error.code is not Code.OTP_REQUIRED:
            raise
        return None
    query: dict[str, str | int] = {"subscriber_id": subscriber_id, "limit": _CARDS}
    parts = await gather_by_name(
        balance=request.get_if_allowed("/api/v1/balance/{user_id}", user_id=subscriber_id),
        payments=get_history(request, subscriber_id, _PAYMENTS),
        cards=request.get_if_allowed("/api/v1/cards", query),
    )
    return {"customer": customer, **parts}
