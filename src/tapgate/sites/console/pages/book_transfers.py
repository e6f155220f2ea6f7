"""Transfers to customers of other books, and decisions about those that are refused.

The page also lists phone numbers that two books have.
"""

from typing import Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client.schemas.books import BookTransferStatus

pages = Pages()

_LIST_PATH: Final = "/api/v1/books/transfers"
_CONFLICTS_PATH: Final = "/api/v1/books/number-conflicts"
_ITEM_PATH: Final = f"{_LIST_PATH}/{{id}}"
_PAGE_SIZE: Final = 25

#: Tabs whose oldest transfer needs attention first.
_OPEN_TABS: Final = (BookTransferStatus.STOPPED, BookTransferStatus.PENDING)

TABS: Final = {
    BookTransferStatus.STOPPED.value: "To decide",
    BookTransferStatus.PENDING.value: "Pending",
    BookTransferStatus.DELIVERED.value: "Delivered",
    BookTransferStatus.RETURNED.value: "Returned",
    "all": "All",
}

ACTIONS: Final = (
    Action(
        name="book_transfer.retry",
        endpoint=f"POST {_ITEM_PATH}/retry",
        title="Retry this transfer now?",
        description="Asks the other book again. It credits the recipient at most once.",
        button="Retry now",
        success_message="The transfer is repeated now.",
    ),
    Action(
        name="book_transfer.return",
        endpoint=f"POST {_ITEM_PATH}/return",
        title="Return this transfer?",
        description="The other book must first confirm that it has not credited the recipient and "
        "never will. Then the amount and the fee go back to the sender. This cannot be undone.",
        button="Return",
        fields=(Field("reason", kind="long"),),
        success_message="The other book is asked to refuse the transfer.",
        is_dangerous=True,
    ),
    Action(
        name="book_transfer.return_unconfirmed",
        endpoint=f"POST {_ITEM_PATH}/return",
        title="Return this transfer without confirmation?",
        description="The other book is no longer in the settings, so it cannot confirm anything. "
        "Compare both books first: if it has credited the recipient, the money is paid twice. "
        "The amount and the fee go back to the sender. This cannot be undone.",
        button="Return without confirmation",
        fields=(
            Field("reason", kind="long"),
            Field("without_confirmation", "The other book has not credited the recipient", "check"),
        ),
        success_message="The money goes back to the sender.",
        is_dangerous=True,
    ),
)


@pages.get("/console/book-transfers")
async def list_book_transfers(request: PageRequest) -> Reply[bytes]:
    query = {**get_filters(request), **request.query.pick("cursor"), "limit": str(_PAGE_SIZE)}
    page = await request.get(_LIST_PATH, query)
    conflicts = None if request.is_partial else await request.get(_CONFLICTS_PATH)
    return request.render(
        "book_transfers/list.html",
        page=page,
        tab=_get_tab(request),
        tabs=TABS,
        conflicts=conflicts,
        has_books=request.context.services.book_peers.own_code is not None,
    )


def get_filters(request: PageRequest) -> dict[str, str]:
    """Return the API's filters for the list page's query."""
    tab = _get_tab(request)
    return {
        **({} if tab == "all" else {"status": tab}),
        "order": "oldest" if tab in _OPEN_TABS else "newest",
    }


def _get_tab(request: PageRequest) -> str:
    return request.query.get("status") or BookTransferStatus.STOPPED
