"""Home page: today's sales and their trend, the next payout, what to do, and latest payments."""

from datetime import datetime, timedelta
from typing import Any, Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.components.merchant_steps import MerchantStep, list_steps
from tapgate.sites.console.components.related import gather_by_name
from tapgate.sites.console.page_request import PORTAL, PageRequest
from tapgate.sites.console.pages import float_requests
from tapgate.sites.console.pages.payouts import LIST_PATH as PAYOUTS_PATH
from tapgate.sites.console.pages.payouts import SCHEDULE_PATH
from tapgate.sites.console.site import Pages
from tapgate.sites.portal.components import (
    find_action,
    get_owner_id,
    get_owner_type,
    is_merchant,
)
from tapgate.sites.portal.pages.payouts import MAX_REQUESTED, add_up_payouts
from tapgate.sites.portal.pages.terminals import TERMINALS_PATH
from tapgate.sites.portal.sales import load_internal, load_sales
from tapgate_client.schemas.approvals import ApprovalStatus
from tapgate_client.schemas.disputes import DisputeStatus
from tapgate_client.schemas.float_requests import FloatRequestStatus
from tapgate_client.schemas.owners import OwnerType
from tapgate_client.schemas.payouts import PayoutStatus
from tapgate_client.schemas.support import SupportRequestStatus

pages = Pages()

_LATEST: Final = 8
_MAX_KEYS: Final = 20
_MAX_WAITING: Final = 100
#: A returned payout is news for this long.
_RETURNED_FOR: Final = timedelta(days=7)

ACTIONS: Final = (
    find_action(
        float_requests.ACTIONS,
        "float_request.create",
        description="Your super-agent is asked first if you have one. Otherwise, the platform is.",
    ),
    find_action(
        float_requests.ACTIONS,
        "float_request.cancel",
        description="Ends the request. No money moves.",
    ),
)


@pages.get(PORTAL)
async def show_home(request: PageRequest) -> Reply[bytes]:
    parts = await gather_by_name(
        owner=request.get("/api/v1/me/owner"),
        latest=request.get("/api/v1/transactions", {"limit": _LATEST}),
        sales=load_sales(request),
        internal=load_internal(request),
        requested=request.get_if_allowed(
            PAYOUTS_PATH, {"status": PayoutStatus.REQUESTED.value, "limit": MAX_REQUESTED}
        ),
        schedule=_load_schedule(request),
        accounts=request.get_if_allowed("/api/v1/bank-accounts", {"limit": 1}),
        waiting=_load_waiting(request),
    )
    requested, accounts = parts.pop("requested"), parts.pop("accounts")
    return request.render(
        "portal/home.html",
        owner_type=get_owner_type(request),
        requested=None if requested is None else add_up_payouts(requested["data"]),
        has_account=bool(accounts and accounts["data"]),
        owner_id=get_owner_id(request),
        steps=await _list_steps(request, parts["latest"]["data"], accounts),
        **parts,
    )


async def _list_steps(
    request: PageRequest, payments: list[Any], accounts: Any
) -> list[MerchantStep]:
    """Return the open steps of a new merchant, for its managers."""
    is_manager = is_merchant(request) and request.can_access(f"POST {TERMINALS_PATH}")
    if not is_manager or (payments and accounts["data"]):
        return []
    owner_id = get_owner_id(request)
    parts = await gather_by_name(
        terminals=request.get(TERMINALS_PATH, {"limit": 1}, id=owner_id),
        keys=request.get("/api/v1/processors/{id}/keys", {"limit": _MAX_KEYS}, id=owner_id),
    )
    return list_steps(
        terminals=parts["terminals"]["data"],
        keys=parts["keys"]["data"],
        payments=payments,
        bank_accounts=accounts["data"],
    )


async def _load_waiting(request: PageRequest) -> dict[str, list[Any]]:
    """Return the records that wait for the viewer or concern the viewer now, by kind."""
    limit = {"limit": _MAX_WAITING}
    parts = await gather_by_name(
        disputes=request.get_if_allowed(
            "/api/v1/disputes", {"status": DisputeStatus.OPEN.value, **limit}
        ),
        replies=request.get_if_allowed(
            "/api/v1/support/requests", {"status": SupportRequestStatus.ANSWERED.value, **limit}
        ),
        returned=request.get_if_allowed(
            PAYOUTS_PATH, {"status": PayoutStatus.RETURNED.value, **limit}
        ),
        webhooks=request.get_if_allowed(
            "/api/v1/admin/webhook-endpoints", {"failing": "true", **limit}
        ),
        approvals=request.get_if_allowed(
            "/api/v1/approvals", {"status": ApprovalStatus.PENDING.value, **limit}
        ),
        floats=request.get_if_allowed(
            "/api/v1/float-requests",
            {"status": FloatRequestStatus.OPEN.value, "agent_id": get_owner_id(request), **limit},
        )
        if get_owner_type(request) is OwnerType.AGENT
        else _get_nothing(),
    )
    waiting = {name: [] if page is None else page["data"] for name, page in parts.items()}
    since = request.now - _RETURNED_FOR
    waiting["returned"] = [
        payout
        for payout in waiting["returned"]
        if datetime.fromisoformat(payout["updated_at"]) >= since
    ]
    return waiting


async def _load_schedule(request: PageRequest) -> Any:
    """Return the payout schedule, which only merchants have."""
    if not is_merchant(request):
        return None
    return await request.get_if_allowed(SCHEDULE_PATH, id=get_owner_id(request))


async def _get_nothing() -> None:
    """Return nothing, for owners without this part."""
