"""Home page: today's sales, the next payout, the balance and the latest payments."""

from decimal import Decimal
from typing import Any, Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.components.merchant_steps import MerchantStep, list_steps
from tapgate.sites.console.components.periods import resolve_preset
from tapgate.sites.console.components.related import gather_by_name
from tapgate.sites.console.page_request import PORTAL, PageRequest
from tapgate.sites.console.pages.payouts import LIST_PATH as PAYOUTS_PATH
from tapgate.sites.console.pages.payouts import SCHEDULE_PATH
from tapgate.sites.console.site import Pages
from tapgate.sites.portal.components import get_owner_id, is_merchant
from tapgate.sites.portal.pages.terminals import SUMMARY_PATH, TERMINALS_PATH
from tapgate_client.schemas.payouts import PayoutStatus
from tapgate_client.schemas.transactions import MoneyFlow

pages = Pages()

_LATEST: Final = 10
_MAX_REQUESTED: Final = 100
_MAX_KEYS: Final = 20


@pages.get(PORTAL)
async def show_home(request: PageRequest) -> Reply[bytes]:
    parts = await gather_by_name(
        owner=request.get("/api/v1/me/owner"),
        latest=request.get("/api/v1/transactions", {"limit": _LATEST}),
        sales=_load_sales(request),
        requested=request.get_if_allowed(
            PAYOUTS_PATH, {"status": PayoutStatus.REQUESTED.value, "limit": _MAX_REQUESTED}
        ),
        schedule=_load_schedule(request),
        accounts=request.get_if_allowed("/api/v1/bank-accounts", {"limit": 1}),
    )
    requested, accounts = parts.pop("requested"), parts.pop("accounts")
    return request.render(
        "portal/home.html",
        is_merchant=is_merchant(request),
        requested=None if requested is None else _add_up(requested["data"]),
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


async def _load_sales(request: PageRequest) -> dict[str, Any]:
    """Return today's sales: gross, fees and count.

    A merchant's summary counts fees as the settlement account pays them. Callers without it, and
    owners that sell nothing, get the list totals.
    """
    settings = request.context.services.settings
    today = resolve_preset("today", request.now, settings.timezone)
    if is_merchant(request) and request.can_access(f"GET {SUMMARY_PATH}"):
        summary = await request.get(SUMMARY_PATH, today, id=get_owner_id(request))
        totals = summary["totals"]
        return {
            "count": totals["sales_count"],
            "amount": totals["sales"],
            "fees": totals["fees"],
            "refunds": totals["refunds"],
        }
    flow = {"flow": MoneyFlow.PAYMENTS.value} if is_merchant(request) else {}
    totals = await request.get("/api/v1/transactions/totals", {**today, **flow})
    return {**totals, "refunds": None}


async def _load_schedule(request: PageRequest) -> Any:
    """Return the payout schedule, which only merchants have."""
    if not is_merchant(request):
        return None
    return await request.get_if_allowed(SCHEDULE_PATH, id=get_owner_id(request))


def _add_up(payouts: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "count": len(payouts),
        "amount": f"{sum((Decimal(payout['amount']) for payout in payouts), Decimal(0)):f}",
    }
