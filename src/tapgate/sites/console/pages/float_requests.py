"""Float requests: the queue, one request, and its funding or decline."""

from decimal import Decimal
from typing import Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components import fields
from tapgate.sites.console.components.next_steps import tell_float_request
from tapgate.sites.console.components.related import gather_by_name, get_audit
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client.schemas.float_requests import FloatRequestStatus

pages = Pages()

_LIST_PATH: Final = "/api/v1/float-requests"
_ITEM_PATH: Final = f"{_LIST_PATH}/{{id}}"
_AGENT_PATH: Final = "/api/v1/agents/{id}"
_PAGE_SIZE: Final = 25
_SUPER_AGENT: Final = "super_agent"
_EFFECT_TEMPLATE: Final = "float_requests/effect.html"

TABS: Final = {
    "finance": "Open",
    _SUPER_AGENT: "With super-agent",
    "funded": "Funded",
    "declined": "Declined",
    "cancelled": "Cancelled",
    "all": "All",
}

ACTIONS: Final = (
    Action(
        name="float_request.create",
        endpoint=f"POST {_AGENT_PATH}/float-requests",
        title="Request float",
        description="Asks for float because the agent wants it. A sub-agent's super-agent is asked "
        "first, other requests go to finance.",
        button="Request float",
        fields=(fields.AMOUNT, Field("note", required=False)),
        success_message="Float requested.",
        moves_money=True,
    ),
    Action(
        name="float_request.fund",
        endpoint=f"POST {_ITEM_PATH}/fund",
        title="Fund this request?",
        description="Use this after you receive the agent's money in cash or by bank transfer. "
        "Moves the requested amount from the platform's cash account to the float immediately.",
        button="Fund",
        success_message="Float funded.",
        moves_money=True,
        preview_path=_ITEM_PATH,
        preview_template=_EFFECT_TEMPLATE,
    ),
    Action(
        name="float_request.decline",
        endpoint=f"POST {_ITEM_PATH}/decline",
        title="Decline this request?",
        description="No money moves. The agent reads the reason and can ask again.",
        button="Decline",
        fields=(Field("reason", kind="long", hint="The agent reads it"),),
        success_message="Float request declined.",
        is_dangerous=True,
        preview_path=_ITEM_PATH,
        preview_template=_EFFECT_TEMPLATE,
    ),
    Action(
        name="float_request.cancel",
        endpoint=f"POST {_ITEM_PATH}/cancel",
        title="Cancel this request?",
        description="Ends the request because the agent asks for it. No money moves.",
        button="Cancel request",
        success_message="Float request cancelled.",
    ),
)


@pages.get("/console/float-requests")
async def list_float_requests(request: PageRequest) -> Reply[bytes]:
    query = {**get_filters(request), **request.query.pick("cursor"), "limit": str(_PAGE_SIZE)}
    page = await request.get(_LIST_PATH, query)
    return request.render("float_requests/list.html", page=page, tab=_get_tab(request), tabs=TABS)


def get_filters(request: PageRequest) -> dict[str, str]:
    """Return the API's filters for the list page's query. Open requests are listed oldest first."""
    tab, filters = _get_tab(request), request.query.pick("agent_id", "parent_agent_id")
    if tab == "all":
        return filters
    if tab in ("finance", _SUPER_AGENT):
        return {**filters, "waits_for": tab, "order": "oldest"}
    return {**filters, "status": tab}


def _get_tab(request: PageRequest) -> str:
    return request.query.get("status") or "finance"


@pages.get("/console/float-requests/{id}")
async def show_float_request(request: PageRequest, id: str) -> Reply[bytes]:
    item = await request.get(_ITEM_PATH, id=id)
    parts = await gather_by_name(
        agent=request.get(_AGENT_PATH, id=item["agent_id"]), audit=get_audit(request, id)
    )
    agent = parts["agent"]
    parent_id = agent["parent_agent_id"]
    balance, amount = Decimal(agent["float_balance"]), Decimal(item["amount"])
    return request.render(
        "float_requests/request.html",
        item=item,
        parent=None if parent_id is None else await request.get(_AGENT_PATH, id=parent_id),
        funded=f"{balance + amount:f}",
        share=100 * amount / balance if balance > 0 else None,
        next_step=tell_float_request(request, item),
        is_open=item["status"] == FloatRequestStatus.OPEN,
        **parts,
    )
