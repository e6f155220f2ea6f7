"""Payments: list with filters, CSV export, and a payment's receipt."""

from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from tapgate.http.endpoint import Reply
from tapgate.sites.console.components.lists import get_filtered_list
from tapgate.sites.console.components.next_steps import tell_dispute
from tapgate.sites.console.components.periods import PRESETS
from tapgate.sites.console.components.stories import tell_transaction
from tapgate.sites.console.components.transaction_actions import (
    get_refundable_amount,
    list_possible_actions,
)
from tapgate.sites.console.page_request import PORTAL, PageRequest
from tapgate.sites.console.pages import transactions
from tapgate.sites.console.site import Pages
from tapgate.sites.portal.components import find_action, get_owner_id
from tapgate.sites.portal.pages.terminals import TERMINALS_PATH
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.transactions import TransactionStatus

pages = Pages()

_LIST_PATH: Final = "/api/v1/transactions"
_ITEM_PATH: Final = f"{_LIST_PATH}/{{id}}"
_DISPUTES_PATH: Final = "/api/v1/disputes"
_FILTERS: Final = {"type": "Type", "flow": "Flow", "status": "Status", "from": "From", "to": "To"}
_MAX_TERMINALS: Final = 100
_REFUND: Final = "transaction.refund"

ACTIONS: Final = (
    find_action(
        transactions.ACTIONS,
        _REFUND,
        description="Returns money from your balance to the customer's wallet.",
    ),
)


@pages.get(f"{PORTAL}/transactions")
async def list_payments(request: PageRequest) -> Reply[bytes]:
    page, filter_errors = await get_filtered_list(request, _LIST_PATH, _FILTERS)
    return request.render(
        "portal/payments.html",
        page=page,
        filter_errors=filter_errors,
        statuses=tuple(TransactionStatus),
        periods=list(PRESETS.items()),
        filters=urlencode(request.query.pick(*_FILTERS, "period")),
    )


pages.get(f"{PORTAL}/transactions/export")(transactions.export_transactions)


@pages.get(f"{PORTAL}/transactions/{{id}}")
async def show_payment(request: PageRequest, id: str) -> Reply[bytes]:
    record = await request.get(_ITEM_PATH, id=id)
    possible = list_possible_actions(record)
    story = tell_transaction(request.translator, record)
    services = request.context.services
    contested = await request.get_if_allowed(_DISPUTES_PATH, {"transaction_id": id})
    dispute = contested["data"][0] if contested and contested["data"] else None
    return request.render(
        "portal/payment.html",
        transaction=record,
        story=story,
        dispute=dispute,
        dispute_step=None if dispute is None else tell_dispute(request, dispute),
        refund=possible.get(_REFUND),
        refundable=get_refundable_amount(record) if _REFUND in possible else None,
        terminal_name=await find_terminal_name(request, record),
        address=f"{services.settings.public_url}{request.context.path}",
        receipt=_write_receipt(request, record, story),
    )


def _write_receipt(request: PageRequest, record: dict[str, Any], story: str) -> str:
    """Return a payment as text, to send to the customer."""
    moment = datetime.fromisoformat(record["completed_at"] or record["created_at"])
    parts = [
        request.branding["name"],
        story,
        f"{moment.astimezone(request.zone):%Y-%m-%d %H:%M}",
        record["approval_code"],
        record["id"],
    ]
    return "\n".join(part for part in parts if part)


async def find_payment(request: PageRequest, id: str) -> dict[str, Any] | None:
    """Return a payment, or None if it is not visible: cashiers see only recent ones."""
    try:
        record: dict[str, Any] = await request.get(_ITEM_PATH, id=id)
    except ApiError as error:
        if error.code != Code.TRANSACTION_NOT_FOUND:
            raise
        return None
    return record


async def find_terminal_name(request: PageRequest, record: dict[str, Any]) -> str | None:
    if record["terminal_id"] is None or not request.can_access(f"GET {TERMINALS_PATH}"):
        return None
    terminals = await request.get(
        TERMINALS_PATH, {"limit": _MAX_TERMINALS}, id=get_owner_id(request)
    )
    names = {terminal["id"]: terminal["name"] for terminal in terminals["data"]}
    return names.get(record["terminal_id"])
