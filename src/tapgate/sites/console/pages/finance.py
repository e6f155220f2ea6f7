"""The finance officer's day: what is done, what is left, and the next step."""

from datetime import timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components.related import gather_by_name
from tapgate.sites.console.page_request import SECURITY_HEADERS, PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client.clock import get_platform_day
from tapgate_client.errors import ApiError

pages = Pages()

_REPORTS: Final = "/api/v1/reports"
_SAFEGUARDING: Final = f"{_REPORTS}/safeguarding"
_MAX_LISTED: Final = 5
_MAX_PAYOUTS: Final = 100

ACTIONS: Final = (
    Action(
        name="ledger_day.close",
        endpoint="POST /api/v1/ledger/days/{date}/close",
        title="Close this day?",
        description="Signs all entries of the day, and of earlier open days. A closed day never "
        "changes.",
        button="Close day",
        success_message="Day closed.",
    ),
)


class Finding(NamedTuple):
    """Finding about one of the day's questions. `tone` is good, warn or bad."""

    tone: str
    text: str


@pages.get("/console/finance")
async def show_finance(request: PageRequest) -> Reply[bytes]:
    services = request.context.services
    today = get_platform_day(services.clock(), services.settings.timezone)
    yesterday = (today - timedelta(days=1)).isoformat()
    parts = await gather_by_name(
        closed=_get_closed_day(request, yesterday),
        statements=request.get("/api/v1/bank-statements", {"limit": 1}),
        reconciliation=request.get(f"{_REPORTS}/reconciliation"),
        lines=request.get(
            "/api/v1/bank-statements/lines", {"status": "unmatched", "limit": _MAX_LISTED}
        ),
        requested=_list_payouts(request, "requested", _MAX_PAYOUTS),
        submitted=_list_payouts(request, "submitted", _MAX_LISTED),
        paid=_list_payouts(request, "paid", _MAX_LISTED),
        runs=request.get("/api/v1/payout-runs", {"limit": 1}),
        safeguarding=request.get(_SAFEGUARDING),
    )
    unmatched = parts["reconciliation"]["data"][0]
    total = sum((Decimal(payout["amount"]) for payout in parts["requested"]["data"]), Decimal(0))
    return request.render(
        "finance/day.html",
        **parts,
        yesterday=yesterday,
        open_steps=_list_open_steps(parts, unmatched["count"], yesterday),
        unmatched=unmatched,
        requested_total=f"{total:f}",
        answers=_build_answers(request, parts, unmatched),
    )


def _list_open_steps(parts: dict[str, Any], unmatched: int, yesterday: str) -> list[str]:
    """Return the steps that are left, in their order. The first is the next one."""
    statements = parts["statements"]["data"]
    steps = {
        "close": not parts["closed"],
        "import": not statements or statements[0]["to"] < yesterday,
        "match": unmatched > 0,
        "run": bool(parts["requested"]["data"]),
    }
    return [step for step, is_open in steps.items() if is_open]


def _list_payouts(request: PageRequest, status: str, limit: int) -> Any:
    return request.get("/api/v1/payouts", {"status": status, "limit": limit})


async def _get_closed_day(request: PageRequest, day: str) -> Any:
    """Return a day's record, or None while it is open."""
    try:
        return await request.get("/api/v1/ledger/days/{date}", date=day)
    except ApiError:
        return None


def _build_answers(
    request: PageRequest, parts: dict[str, Any], unmatched: dict[str, Any]
) -> list[Finding]:
    """Finding what a finance officer asks first."""
    return [
        Finding("good", request.translate("Yesterday is closed"))
        if parts["closed"]
        else Finding("warn", request.translate("Yesterday is open")),
        _describe_difference(request, parts["safeguarding"]["difference"]),
        _describe_payouts(request, len(parts["requested"]["data"])),
        _describe_lines(request, unmatched["count"]),
    ]


def _describe_difference(request: PageRequest, difference: str | None) -> Finding:
    if difference is None:
        return Finding("warn", request.translate("No bank balance yet"))
    if Decimal(difference):
        return Finding("bad", request.translate("The bank disagrees"))
    return Finding("good", request.translate("The bank agrees"))


def _describe_payouts(request: PageRequest, count: int) -> Finding:
    if not count:
        return Finding("good", request.translate("No payout must be paid"))
    text = request.translator.translate_plural(
        count, "{count} payout must be paid", "{count} payouts must be paid"
    )
    return Finding("warn", text)


def _describe_lines(request: PageRequest, count: int) -> Finding:
    if not count:
        return Finding("good", request.translate("Nobody is missing money"))
    text = request.translator.translate_plural(
        count, "{count} bank line is unmatched", "{count} bank lines are unmatched"
    )
    return Finding("warn", text)


@pages.get("/console/finance/safeguarding")
async def download_safeguarding(request: PageRequest) -> Reply[bytes]:
    query = {"format": "pdf", **request.query.pick("day", "format")}
    file: Reply[bytes] = await request.get(_SAFEGUARDING, query)
    headers = {**SECURITY_HEADERS, **file.headers}
    return Reply(file.body, headers=headers, content_type=file.content_type)
