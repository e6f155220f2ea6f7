"""Transaction list, transaction details with ledger entries, and CSV export."""

import asyncio
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from tapgate import ids
from tapgate.console.filtering import get_filtered_list
from tapgate.console.labels import get_transaction_status_label
from tapgate.console.page_request import PageRequest, build_path
from tapgate.console.site import Pages
from tapgate.edge.endpoint import Reply
from tapgate.errors import ApiError, Code
from tapgate.ledger import chart
from tapgate.transactions.model import TRANSACTION_STATUSES, TRANSACTION_TYPES

pages = Pages()

_LIST_PATH: Final = "/api/v1/transactions"
_ALERTS_PATH: Final = "/api/v1/compliance/alerts"
_FILTERS: Final = {
    "user_id": "Party ID",
    "card_serial": "Card",
    "type": "Type",
    "status": "Status",
    "from": "From",
    "to": "To",
}


@pages.get("/console/transactions")
async def list_transactions(visit: PageRequest) -> Reply[bytes]:
    try:
        found, wrong = await get_filtered_list(visit, _LIST_PATH, _FILTERS)
    except ApiError as error:
        return _redirect_to_subscriber(visit, error)
    return visit.render(
        "transactions/list.html",
        found=found,
        wrong=wrong,
        types=TRANSACTION_TYPES,
        statuses=[
            (status, get_transaction_status_label(status)) for status in TRANSACTION_STATUSES
        ],
        filters=urlencode(visit.query.pick(*_FILTERS)),
    )


@pages.get("/console/transactions/export")
async def export_transactions(visit: PageRequest) -> Reply[bytes]:
    """Return the API's export. A script on the page offers the next file if there are more rows."""
    try:
        file: Reply[bytes] = await visit.get(
            f"{_LIST_PATH}/export", visit.query.pick(*_FILTERS, "cursor", "limit")
        )
    except ApiError as error:
        return _redirect_to_subscriber(visit, error)
    return file


@pages.get("/console/transactions/{id}")
async def show_transaction(visit: PageRequest, id: str) -> Reply[bytes]:
    one = build_path(f"{_LIST_PATH}/{{id}}", {"id": id})
    record = await visit.get(one)
    booked, chain, alerts = await asyncio.gather(
        visit.get(f"{one}/entries"),
        visit.get(f"{one}/chain"),
        visit.get_if_allowed(f"GET {_ALERTS_PATH}", _ALERTS_PATH, {"transaction_id": id}),
    )
    entries = booked["entries"]
    return visit.render(
        "transactions/transaction.html",
        transaction=record,
        entries=entries,
        total=f"{sum((Decimal(entry['amount']) for entry in entries), Decimal(0)):f}",
        chain=chain,
        refundable=_get_refundable_amount(record),
        failure_details=_to_text_values(record.get("failure_details") or {}),
        metadata=_to_text_values(record["metadata"] or {}),
        alerts=alerts and alerts["data"],
    )


def _redirect_to_subscriber(visit: PageRequest, error: ApiError) -> Reply[bytes]:
    """Redirect to the restricted subscriber's page, where a one-time code grants access."""
    user_id = visit.query.get("user_id") or ""
    if error.code is not Code.OTP_REQUIRED or not user_id.startswith(ids.SUBSCRIBER):
        raise error
    return visit.redirect(
        build_path("/console/subscribers/{id}", {"id": user_id}),
        "This customer is restricted. Request an access code to see their transactions.",
    )


def _get_refundable_amount(record: dict[str, Any]) -> str | None:
    """Return the amount of a payment not yet refunded; None if it cannot be refunded at all."""
    if record["type"] not in chart.PAYMENT_TYPES or record["status"] in ("failed", "under_review"):
        return None
    return f"{Decimal(record['amount']) - Decimal(record['refunded_amount']):f}"


def _to_text_values(values: dict[str, Any]) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in values.items()
    }
