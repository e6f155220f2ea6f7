"""Disputes: payments that customers contest, and the merchant's answer."""

from typing import Final

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
    page = await request.get(_LIST_PATH, request.query.pick("status", "cursor"))
    return request.render("portal/disputes.html", page=page, statuses=tuple(DisputeStatus))


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
