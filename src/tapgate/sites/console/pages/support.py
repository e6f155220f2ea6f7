"""Support requests: the queue, the conversation with a customer, and replies."""

from typing import Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components.case import load_case
from tapgate.sites.console.components.queues import build_assign_actions, find_next
from tapgate.sites.console.components.related import gather_by_name, get_audit
from tapgate.sites.console.components.state_actions import build_state_action
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.pages.saved_replies import load_saved_replies
from tapgate.sites.console.site import Pages
from tapgate_client.schemas.support import MAX_REPLY_LENGTH, SupportRequestStatus

pages = Pages()

_REQUESTS_PATH: Final = "/api/v1/support/requests"
_REQUEST_PATH: Final = f"{_REQUESTS_PATH}/{{id}}"
_QUEUE_PATH: Final = "/console/support"
_NEXT_PATH: Final = f"{_QUEUE_PATH}/next"
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
    *build_assign_actions("support", _REQUEST_PATH, "request"),
    build_state_action(
        "support",
        _REQUEST_PATH,
        "request",
        "close",
        "Ends the conversation. Customers get a message that says so. If the customer asks for "
        "support again, a new request opens. This can't be undone.",
        redirect_path=_NEXT_PATH,
    ),
)


@pages.get(_QUEUE_PATH)
async def list_requests(request: PageRequest) -> Reply[bytes]:
    tab = request.query.get("status") or SupportRequestStatus.OPEN
    page = await request.get(
        _REQUESTS_PATH,
        {**get_filters(request), "limit": _PAGE_SIZE, **request.query.pick("cursor")},
    )
    return request.render(
        "support/list.html",
        page=page,
        tab=tab,
        tabs=TABS,
        now=request.context.services.clock(),
    )


def get_filters(request: PageRequest) -> dict[str, str]:
    """Return the API's filters for the list page's query."""
    filters = {
        "status": SupportRequestStatus.OPEN.value,
        **request.query.pick("status", "assignee", "subscriber_id"),
    }
    if filters["status"] == SupportRequestStatus.OPEN:
        filters["order"] = "oldest"
    elif filters["status"] == "all":
        del filters["status"]
    return filters


@pages.get(_NEXT_PATH)
async def show_next(request: PageRequest) -> Reply[bytes]:
    """Redirect to the request that has been open longest, or to the queue if there is none."""
    query = {"status": SupportRequestStatus.OPEN.value, "order": "oldest"}
    next_id = await find_next(request, _REQUESTS_PATH, query)
    return request.redirect(_QUEUE_PATH if next_id is None else f"{_QUEUE_PATH}/{next_id}")


@pages.get("/console/support/{id}")
async def show_request(request: PageRequest, id: str) -> Reply[bytes]:
    support_request = await request.get(_REQUEST_PATH, id=id)
    parts = await gather_by_name(
        case=load_case(request, support_request["subscriber_id"]),
        audit=get_audit(request, id),
        saved_replies=load_saved_replies(request, support_request.get("language")),
    )
    return request.render(
        "support/request.html",
        support_request=support_request,
        is_closed=support_request["status"] == SupportRequestStatus.CLOSED,
        max_reply_length=MAX_REPLY_LENGTH,
        **parts,
    )
