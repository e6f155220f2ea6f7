"""Support requests: the queue, the conversation with a customer, and replies."""

from typing import Any, Final

from tapgate.console.actions import Action
from tapgate.console.components.related import gather_by_name, get_audit
from tapgate.console.components.state_actions import build_state_action
from tapgate.console.form_fields import Field
from tapgate.console.page_request import PageRequest
from tapgate.console.site import Pages
from tapgate.errors import ApiError, Code
from tapgate.http.endpoint import Reply
from tapgate.schemas.support import MAX_REPLY_LENGTH, SupportStatus

pages = Pages()

_REQUESTS_PATH: Final = "/api/v1/support/requests"
_REQUEST_PATH: Final = f"{_REQUESTS_PATH}/{{id}}"
_PAGE_SIZE: Final = 25

TABS: Final = {"open": "Open", "answered": "Answered", "closed": "Closed", "all": "All"}

ACTIONS: Final = (
    Action(
        name="support.reply",
        endpoint=f"POST {_REQUEST_PATH}/reply",
        title="Reply to customer",
        button="Send reply",
        fields=(Field("text", "Reply", "long", hint="Sent to the customer's phone"),),
        success_message="Reply sent.",
    ),
    Action(
        name="support.assign",
        endpoint=f"POST {_REQUEST_PATH}/assign",
        title="Assign to me?",
        description="Shows the team that you handle this request.",
        button="Assign to me",
        success_message="Request assigned to you.",
    ),
    build_state_action(
        "support",
        _REQUEST_PATH,
        "request",
        "close",
        "Ends the conversation. The customer isn't notified. If the customer asks for support "
        "again, a new request opens. This can't be undone.",
    ),
)


@pages.get("/console/support")
async def list_requests(request: PageRequest) -> Reply[bytes]:
    filters: dict[str, str | int] = {
        "status": "open",
        "limit": _PAGE_SIZE,
        **request.query.pick("status", "assignee", "subscriber_id", "cursor"),
    }
    tab = filters["status"]
    if tab == "all":
        del filters["status"]
    page = await request.get(_REQUESTS_PATH, filters)
    return request.render(
        "support/list.html",
        page=page,
        tab=tab,
        tabs=TABS,
        now=request.context.services.clock(),
    )


@pages.get("/console/support/{id}")
async def show_request(request: PageRequest, id: str) -> Reply[bytes]:
    support_request = await request.get(_REQUEST_PATH, id=id)
    parts = await gather_by_name(
        customer=_load_customer(request, support_request["subscriber_id"]),
        audit=get_audit(request, id),
    )
    return request.render(
        "support/request.html",
        support_request=support_request,
        is_closed=support_request["status"] == SupportStatus.CLOSED,
        max_reply_length=MAX_REPLY_LENGTH,
        **parts,
    )


async def _load_customer(request: PageRequest, subscriber_id: str | None) -> Any:
    """Load the customer. Return None for a phone without an account, or if it is restricted."""
    if subscriber_id is None:
        return None
    try:
        return await request.get("/api/v1/subscribers/{id}", id=subscriber_id)
    except ApiError as error:
        if error.code is not Code.OTP_REQUIRED:
            raise
        return None
