"""Disputes: the queue, one dispute, and its decision."""

from decimal import Decimal
from typing import Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components import fields
from tapgate.sites.console.components.case import load_case
from tapgate.sites.console.components.lists import get_filtered_list
from tapgate.sites.console.components.next_steps import tell_dispute
from tapgate.sites.console.components.related import gather_by_name, get_audit
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.pickers import get_chosen_name
from tapgate.sites.console.site import Pages
from tapgate_client.schemas.disputes import DisputeDecision, DisputeStatus

pages = Pages()

_LIST_PATH: Final = "/api/v1/disputes"
_ITEM_PATH: Final = f"{_LIST_PATH}/{{id}}"
_PAGE_SIZE: Final = 25
_OVERDUE: Final = "overdue"
_PARTY_FILTERS: Final = {"subscriber_id": "Customer", "processor_id": "Merchant"}
UNDECIDED: Final = (DisputeStatus.OPEN, DisputeStatus.ANSWERED)

TABS: Final = {
    "open": "Open",
    _OVERDUE: "Overdue",
    "answered": "Answered",
    "all": "All",
}

ACTIONS: Final = (
    Action(
        name="dispute.respond",
        endpoint=f"POST {_ITEM_PATH}/respond",
        title="Record merchant response",
        description="Records what the merchant says. The customer reads it, and compliance "
        "decides.",
        button="Record response",
        fields=(Field("text", "Merchant response", "long"),),
        success_message="Response recorded.",
    ),
    Action(
        name="dispute.accept",
        endpoint=f"POST {_ITEM_PATH}/respond",
        title="Accept for the merchant",
        description="Refunds the disputed amount from the merchant's balance at once, and ends the "
        "dispute.",
        button="Accept and refund",
        fields=(
            Field("text", "Merchant response", "long"),
            Field("accept", kind="hidden", value=True),
        ),
        success_message="Customer refunded.",
    ),
    Action(
        name="dispute.refund",
        endpoint=f"POST {_ITEM_PATH}/decide",
        title="Refund the customer?",
        description="Refunds the disputed amount, at most what remains of the payment, from the "
        "merchant's balance to the customer's wallet. This can't be undone.",
        button="Refund customer",
        fields=(
            fields.REASON,
            Field("decision", kind="hidden", value=DisputeDecision.REFUND.value),
        ),
        success_message="Customer refunded.",
    ),
    Action(
        name="dispute.reject",
        endpoint=f"POST {_ITEM_PATH}/decide",
        title="Reject this dispute?",
        description="The payment stays as it is. The customer reads the reason. This can't be "
        "undone.",
        button="Reject",
        fields=(
            fields.REASON,
            Field("decision", kind="hidden", value=DisputeDecision.REJECT.value),
        ),
        success_message="Dispute rejected.",
        is_dangerous=True,
    ),
    Action(
        name="dispute.withdraw",
        endpoint=f"POST {_ITEM_PATH}/withdraw",
        title="Withdraw this dispute?",
        description="Ends the dispute because the customer asks for it. The payment can't be "
        "disputed again.",
        button="Withdraw",
        success_message="Dispute withdrawn.",
    ),
)


@pages.get("/console/disputes")
async def list_disputes(request: PageRequest) -> Reply[bytes]:
    page, filter_errors = await get_filtered_list(
        request,
        _LIST_PATH,
        _PARTY_FILTERS,
        {"subscriber_id": "subscriber", "processor_id": "processor"},
        fixed={**_get_tab_filters(request), "limit": str(_PAGE_SIZE)},
    )
    return request.render(
        "disputes/list.html",
        page=page,
        filter_errors=filter_errors,
        tab=_get_tab(request),
        tabs=TABS,
        undecided=UNDECIDED,
    )


def get_filters(request: PageRequest) -> dict[str, str]:
    """Return the API's filters for the list page's query, with the chosen records' IDs."""
    chosen = {name: request.query.get(get_chosen_name(name)) for name in _PARTY_FILTERS}
    parties = request.query.pick(*_PARTY_FILTERS) | {
        name: public_id for name, public_id in chosen.items() if public_id is not None
    }
    return {**_get_tab_filters(request), **parties}


def _get_tab(request: PageRequest) -> str:
    return request.query.get("status") or DisputeStatus.OPEN


def _get_tab_filters(request: PageRequest) -> dict[str, str]:
    """Return the API's filters for the tab. Undecided disputes are listed oldest first."""
    tab = _get_tab(request)
    if tab == "all":
        return {}
    filters = {"overdue": "true"} if tab == _OVERDUE else {"status": tab}
    return {**filters, "order": "oldest"}


@pages.get("/console/disputes/{id}")
async def show_dispute(request: PageRequest, id: str) -> Reply[bytes]:
    dispute = await request.get(_ITEM_PATH, id=id)
    parts = await gather_by_name(
        payment=request.get("/api/v1/transactions/{id}", id=dispute["transaction_id"]),
        case=load_case(request, dispute["subscriber_id"]),
        audit=get_audit(request, id),
    )
    payment = parts["payment"]
    remaining = Decimal(payment["amount"]) - Decimal(payment["refunded_amount"])
    return request.render(
        "disputes/dispute.html",
        dispute=dispute,
        remaining=f"{remaining:f}",
        refund=f"{min(remaining, Decimal(dispute['amount'])):f}",
        next_step=tell_dispute(request, dispute),
        is_undecided=dispute["status"] in UNDECIDED,
        **parts,
    )
