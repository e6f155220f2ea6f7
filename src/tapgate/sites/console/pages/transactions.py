"""Transaction list, transaction details with ledger entries, and CSV export."""

import asyncio
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from tapgate.http.endpoint import Reply
from tapgate.ledger import chart
from tapgate.sites.console.components.declines import explain_decline
from tapgate.sites.console.components.lists import get_filtered_list
from tapgate.sites.console.components.next_steps import tell_book_transfer
from tapgate.sites.console.components.periods import PRESETS, resolve_period
from tapgate.sites.console.components.related import get_alerts, get_rules
from tapgate.sites.console.components.stories import tell_transaction
from tapgate.sites.console.components.transaction_actions import (
    ACTIONS,
    RECALL,
    get_refundable_amount,
    get_reversible_amount,
    list_possible_actions,
)
from tapgate.sites.console.labels import get_flow_label
from tapgate.sites.console.page_request import PageRequest, build_path
from tapgate.sites.console.pickers import get_chosen_name
from tapgate.sites.console.site import Pages
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.transactions import (
    MoneyFlow,
    TransactionOrder,
    TransactionStatus,
    TransactionType,
)

__all__ = ["ACTIONS", "pages"]

pages = Pages()

_LIST_PATH: Final = "/api/v1/transactions"
_ITEM_PATH: Final = f"{_LIST_PATH}/{{id}}"
_FILTERS: Final = {
    "user_id": "Party",
    "card_serial": "Card",
    "type": "Type",
    "flow": "Flow",
    "status": "Status",
    "failure_code": "Decline code",
    "from": "From",
    "to": "To",
}


_PARTY_TYPES: Final = "subscriber,agent,processor,partner"


@pages.get("/console/transactions")
async def list_transactions(request: PageRequest) -> Reply[bytes]:
    try:
        page, filter_errors = await get_filtered_list(
            request, _LIST_PATH, {**_FILTERS, "order": "Order"}, {"user_id": _PARTY_TYPES}
        )
    except ApiError as error:
        return _redirect_to_subscriber(request, error)
    return request.render(
        "transactions/list.html",
        page=page,
        filter_errors=filter_errors,
        types=tuple(TransactionType),
        statuses=tuple(TransactionStatus),
        flows=[(flow, get_flow_label(flow)) for flow in MoneyFlow],
        periods=list(PRESETS.items()),
        filters=urlencode(request.query.pick(*_FILTERS, "user_id.id", "period")),
    )


@pages.get("/console/transactions/export")
async def export_transactions(request: PageRequest) -> Reply[bytes]:
    """Return the API's export. A script on the page offers the next file if there are more rows.

    Exports are complete, so they are not sorted by amount.
    """
    order = request.query.get("order")
    try:
        file: Reply[bytes] = await request.get(
            f"{_LIST_PATH}/export",
            {
                **request.query.pick(*_FILTERS, "cursor", "limit"),
                **({"order": order} if order == TransactionOrder.OLDEST else {}),
                **_get_party(request),
                **resolve_period(request),
            },
        )
    except ApiError as error:
        return _redirect_to_subscriber(request, error)
    return file


@pages.get("/console/transactions/totals")
async def show_totals(request: PageRequest) -> Reply[bytes]:
    """Render the totals below a filtered list, which loads them after the list."""
    filters = {
        **request.query.pick(*_FILTERS),
        **_get_party(request),
        **resolve_period(request),
    }
    totals = await request.get(f"{_LIST_PATH}/totals", filters)
    return request.render("transactions/totals.html", totals=totals)


@pages.get("/console/transactions/{id}")
async def show_transaction(request: PageRequest, id: str) -> Reply[bytes]:
    record = await request.get(_ITEM_PATH, id=id)
    ledger_entries, chain, alerts, rules, recall, book_transfer = await asyncio.gather(
        request.get(f"{_ITEM_PATH}/entries", id=id),
        request.get(f"{_ITEM_PATH}/chain", id=id),
        get_alerts(request, transaction_id=id),
        get_rules(request),
        _find_recall(request, record),
        _find_book_transfer(request, record),
    )
    possible = list_possible_actions(record)
    if recall is not None:
        possible.pop(RECALL, None)
    entries = ledger_entries["entries"]
    return request.render(
        "transactions/transaction.html",
        transaction=record,
        story=tell_transaction(request.translator, record),
        possible=possible,
        entries=entries,
        total=f"{sum((Decimal(entry['amount']) for entry in entries), Decimal(0)):f}",
        chain=chain,
        refundable=_get_refundable_amount(record),
        reversible=_get_reversible_amount(record),
        recall=recall,
        book_transfer=book_transfer,
        next_step=None if book_transfer is None else tell_book_transfer(request, book_transfer),
        failure_details=_to_text_values(record.get("failure_details") or {}),
        metadata=_to_text_values(record["metadata"] or {}),
        alerts=alerts and alerts["data"],
        rules=rules,
    )


@pages.get("/console/transactions/{id}/decline")
async def explain_declined_transaction(request: PageRequest, id: str) -> Reply[bytes]:
    """Render the dialog that explains a decline."""
    record = await request.get(_ITEM_PATH, id=id)
    if record["failure_code"] is None:
        raise ApiError(Code.NOT_FOUND)
    return request.render(
        "transactions/decline.html",
        transaction=record,
        story=tell_transaction(request.translator, record),
        explanation=explain_decline(request.translator, record),
        failure_details=record.get("failure_details") or {},
    )


def _get_party(request: PageRequest) -> dict[str, str]:
    """Return the filter by party, with the ID that was chosen in its picker."""
    user_id = request.query.get(get_chosen_name("user_id")) or request.query.get("user_id")
    return {} if user_id is None else {"user_id": user_id}


def _redirect_to_subscriber(request: PageRequest, error: ApiError) -> Reply[bytes]:
    """Redirect to the restricted subscriber's page, where a one-time code grants access.

    Any other error is raised again.
    """
    user_id = _get_party(request).get("user_id", "")
    if error.code is not Code.OTP_REQUIRED or not user_id.startswith(ids.SUBSCRIBER):
        raise error
    return request.redirect(
        build_path("/console/subscribers/{id}", {"id": user_id}),
        "This customer is restricted. Request an access code to see their transactions.",
    )


def _get_refundable_amount(record: dict[str, Any]) -> str | None:
    """Return the unrefunded amount of a payment; None if the transaction is not refundable."""
    if record["type"] not in chart.PAYMENT_TYPES or record["status"] in ("failed", "under_review"):
        return None
    return get_refundable_amount(record)


def _get_reversible_amount(record: dict[str, Any]) -> str | None:
    """Return the unreversed amount; None if the transaction is not reversible."""
    if record["type"] not in chart.REVERSIBLE_TYPES or record["status"] in (
        TransactionStatus.FAILED,
        TransactionStatus.UNDER_REVIEW,
    ):
        return None
    return get_reversible_amount(record)


async def _find_recall(request: PageRequest, record: dict[str, Any]) -> dict[str, Any] | None:
    """Return the transfer's recall, if it has one and the admin may see recalls."""
    if record["type"] != chart.TRANSFER_P2P:
        return None
    page = await request.get_if_allowed("/api/v1/recalls", {"transaction_id": record["id"]})
    found: list[dict[str, Any]] = [] if page is None else page["data"]
    return found[0] if found else None


async def _find_book_transfer(
    request: PageRequest, record: dict[str, Any]
) -> dict[str, Any] | None:
    """Return the delivery to another book, if it is one and the admin may see deliveries."""
    if record["book"] is None:
        return None
    try:
        found: dict[str, Any] | None = await request.get_if_allowed(
            "/api/v1/books/transfers/{id}", id=record["id"]
        )
    except ApiError as error:
        if error.code is not Code.TRANSACTION_NOT_FOUND:
            raise
        return None  # from another book
    return found


def _to_text_values(values: dict[str, Any]) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in values.items()
    }
