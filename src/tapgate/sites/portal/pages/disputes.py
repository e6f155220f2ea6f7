"""Disputes: payments that customers contest, and the merchant's answer."""

import asyncio
from typing import Any, Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.components.next_steps import tell_dispute
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PORTAL, PageRequest
from tapgate.sites.console.pages import disputes
from tapgate.sites.console.site import Pages
from tapgate.sites.portal.components import find_action
from tapgate.sites.portal.pages.payments import find_payment, find_terminal_name
from tapgate.sites.portal.stages import list_dispute_stages
from tapgate_client.schemas.disputes import DisputeStatus

pages = Pages()

_LIST_PATH: Final = "/api/v1/disputes"
_PAGE_SIZE: Final = 25

ACTIONS: Final = (
    find_action(
        disputes.ACTIONS,
        "dispute.respond",
        title="Answer this dispute",
        description="Explain why the payment is correct. The customer reads your answer, and the "
        "platform decides.",
        button="Answer",
        fields=(Field("text", "Your answer", "long"),),
        success_message="Answer sent.",
    ),
    find_action(
        disputes.ACTIONS,
        "dispute.accept",
        title="Accept this dispute?",
        description="Refunds the disputed amount from your balance at once, and ends the dispute.",
        fields=(
            Field("text", "Your answer", "long"),
            Field("accept", kind="hidden", value=True),
        ),
    ),
)


@pages.get(f"{PORTAL}/disputes")
async def list_disputes(request: PageRequest) -> Reply[bytes]:
    page = await request.get(
        _LIST_PATH, {**request.query.pick("status", "cursor"), "limit": _PAGE_SIZE}
    )
    return request.render(
        "portal/disputes.html",
        page=page,
        payments=await _load_payments(request, page["data"]),
        statuses=tuple(DisputeStatus),
    )


async def _load_payments(request: PageRequest, disputes: list[Any]) -> dict[str, Any]:
    """Return the disputed payments that the viewer may see. A cashier sees only two days."""
    ids = {dispute["transaction_id"] for dispute in disputes}
    payments = await asyncio.gather(*(find_payment(request, id) for id in ids))
    return {payment["id"]: payment for payment in payments if payment is not None}


@pages.get(f"{PORTAL}/disputes/{{id}}")
async def show_dispute(request: PageRequest, id: str) -> Reply[bytes]:
    dispute = await request.get(f"{_LIST_PATH}/{{id}}", id=id)
    payment = await find_payment(request, dispute["transaction_id"])
    return request.render(
        "portal/dispute.html",
        dispute=dispute,
        is_undecided=dispute["status"] in disputes.UNDECIDED,
        next_step=tell_dispute(request, dispute),
        stages=list_dispute_stages(dispute),
        payment=payment,
        terminal_name=None if payment is None else await find_terminal_name(request, payment),
    )
