"""Terminals: list, sales by terminal and day, add, block and unblock."""

from decimal import Decimal
from typing import Any, Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.components.periods import PRESETS, resolve_period, resolve_preset
from tapgate.sites.console.components.related import gather_by_name
from tapgate.sites.console.page_request import PORTAL, PageRequest
from tapgate.sites.console.pages import processors
from tapgate.sites.console.site import Pages
from tapgate.sites.portal.components import find_action, get_owner_id

pages = Pages()

SUMMARY_PATH: Final = "/api/v1/processors/{id}/summary"
TERMINALS_PATH: Final = "/api/v1/processors/{id}/terminals"

_MAX_NAMED: Final = 100
_DEFAULT_PERIOD: Final = "week"
_PERIODS: Final = {name: PRESETS[name] for name in ("today", "yesterday", "week", "month")}

ACTIONS: Final = (
    find_action(processors.ACTIONS, "terminal.add", result_template="portal/terminal_added.html"),
    find_action(processors.ACTIONS, "terminal.block"),
    find_action(processors.ACTIONS, "terminal.unblock"),
    find_action(processors.ACTIONS, "terminal.key"),
)


@pages.get(f"{PORTAL}/terminals")
async def list_terminals(request: PageRequest) -> Reply[bytes]:
    owner_id = get_owner_id(request)
    parts = await gather_by_name(
        page=request.get(TERMINALS_PATH, request.query.pick("cursor"), id=owner_id),
        named=request.get(TERMINALS_PATH, {"limit": _MAX_NAMED}, id=owner_id),
        summary=_load_summary(request),
    )
    names = {terminal["id"]: terminal["name"] for terminal in parts.pop("named")["data"]}
    return request.render(
        "portal/terminals.html",
        owner_id=owner_id,
        names=names,
        periods=_PERIODS,
        sums=parts["summary"] and _add_up(parts["summary"]["terminals"]),
        **parts,
    )


def _add_up(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Return the totals of the table, whose nets leave out payouts."""
    return {
        name: f"{sum((Decimal(row[name]) for row in rows), Decimal(0)):f}"
        for name in ("sales", "fees", "refunds", "net")
    }


async def _load_summary(request: PageRequest) -> Any:
    """Return sales by terminal and day, or None for a cashier or a part of the page."""
    if request.is_partial:
        return None
    known = request.query.get("period") in _PERIODS
    period = (
        resolve_period(request)
        if known
        else resolve_preset(
            _DEFAULT_PERIOD, request.now, request.context.services.settings.timezone
        )
    )
    return await request.get_if_allowed(
        SUMMARY_PATH, {**period, "terminals": "true"}, id=get_owner_id(request)
    )
