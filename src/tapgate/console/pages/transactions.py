"""Transactions: the list, one of them down to its ledger entries, and the list as a file."""

import asyncio
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from tapgate import ids
from tapgate.console.filtering import listed
from tapgate.console.site import Pages
from tapgate.console.visit import Visit, at
from tapgate.edge.endpoint import Reply
from tapgate.errors import TABLE, ApiError, Code
from tapgate.ledger import chart
from tapgate.transactions.model import TRANSACTION_STATUSES, TRANSACTION_TYPES

pages = Pages()

_ALL: Final = "/api/v1/transactions"
_ALERTS: Final = "/api/v1/compliance/alerts"
_FILTERS: Final = {
    "user_id": "User",
    "card_serial": "Card",
    "type": "Type",
    "status": "Status",
    "from": "From",
    "to": "To",
}


@pages.get("/console/transactions")
async def transactions(visit: Visit) -> Reply[bytes]:
    try:
        found, wrong = await listed(visit, _ALL, _FILTERS)
    except ApiError as error:
        return _to_the_person(visit, error)
    return visit.page(
        "transactions/list.html",
        found=found,
        wrong=wrong,
        types=TRANSACTION_TYPES,
        statuses=TRANSACTION_STATUSES,
        filters=urlencode(visit.query.pick(*_FILTERS)),
    )


@pages.get("/console/transactions/export")
async def export(visit: Visit) -> Reply[bytes]:
    """The interface's own file; a script of the page looks whether there is another one."""
    try:
        file: Reply[bytes] = await visit.get(
            f"{_ALL}/export", visit.query.pick(*_FILTERS, "cursor", "limit")
        )
    except ApiError as error:
        return _to_the_person(visit, error)
    return file


@pages.get("/console/transactions/{id}")
async def transaction(visit: Visit, id: str) -> Reply[bytes]:
    one = at(f"{_ALL}/{{id}}", {"id": id})
    record = await visit.get(one)
    booked, chain, alerts = await asyncio.gather(
        visit.get(f"{one}/entries"),
        visit.get(f"{one}/chain"),
        visit.get_if_allowed(f"GET {_ALERTS}", _ALERTS, {"transaction_id": id}),
    )
    entries = booked["entries"]
    return visit.page(
        "transactions/transaction.html",
        transaction=record,
        entries=entries,
        total=f"{sum((Decimal(entry['amount']) for entry in entries), Decimal(0)):f}",
        chain=chain,
        refundable=_refundable(record),
        failure=_failure(record["failure_code"]),
        failure_details=_as_text(record.get("failure_details") or {}),
        metadata=_as_text(record["metadata"] or {}),
        alerts=alerts and alerts["data"],
    )


def _to_the_person(visit: Visit, error: ApiError) -> Reply[bytes]:
    """To the page of whoever was asked for, where a code opens what is theirs."""
    user_id = visit.query.get("user_id") or ""
    if error.code is not Code.OTP_REQUIRED or not user_id.startswith(ids.SUBSCRIBER):
        raise error
    return visit.go(
        at("/console/subscribers/{id}", {"id": user_id}),
        "These transactions are of a restricted subscriber. Ask for a code first, then come back.",
    )


def _refundable(record: dict[str, Any]) -> str | None:
    """What is left of a payment that was made; None for what cannot be refunded at all."""
    if record["type"] not in chart.PAYMENT_TYPES or record["status"] in ("failed", "under_review"):
        return None
    return f"{Decimal(record['amount']) - Decimal(record['refunded_amount']):f}"


def _failure(code: str | None) -> str | None:
    return None if code is None else TABLE[Code(code)][1]


def _as_text(values: dict[str, Any]) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in values.items()
    }
