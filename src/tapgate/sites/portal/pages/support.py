"""Support: questions to the operator's staff, and their replies."""

from typing import Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components.next_steps import tell_support_request
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PORTAL, PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client.schemas.support import MAX_CUSTOMER_TEXT_LENGTH, SupportRequestStatus

pages = Pages()

_REQUESTS_PATH: Final = "/api/v1/support/requests"
_REQUEST_PATH: Final = f"{_REQUESTS_PATH}/{{id}}"
_TEXT: Final = Field("text", "Message", "long", hint="Never write a PIN or a password.")

ACTIONS: Final = (
    Action(
        name="support.ask",
        endpoint="POST /api/v1/support/owner-requests",
        title="Ask support",
        description="Support answers here, in the portal.",
        button="Ask support",
        fields=(_TEXT, Field("about", kind="hidden", required=False)),
        success_message="Question sent.",
        redirect_path="/console/support/{id}",
    ),
    Action(
        name="support.write",
        endpoint=f"POST {_REQUEST_PATH}/messages",
        title="Write to support",
        button="Write to support",
        fields=(_TEXT,),
        success_message="Message sent.",
    ),
)


@pages.get(f"{PORTAL}/support")
async def list_requests(request: PageRequest) -> Reply[bytes]:
    page = await request.get(_REQUESTS_PATH, request.query.pick("status", "cursor"))
    return request.render("portal/support.html", page=page, statuses=tuple(SupportRequestStatus))


@pages.get(f"{PORTAL}/support/{{id}}")
async def show_request(request: PageRequest, id: str) -> Reply[bytes]:
    support_request = await request.get(_REQUEST_PATH, id=id)
    is_closed = support_request["status"] == SupportRequestStatus.CLOSED
    return request.render(
        "portal/support_request.html",
        support_request=support_request,
        is_closed=is_closed,
        next_step=tell_support_request(request, support_request),
        max_length=MAX_CUSTOMER_TEXT_LENGTH,
    )
