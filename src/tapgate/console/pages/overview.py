"""Home page with the platform overview."""

from collections.abc import Mapping
from typing import Any, Final

from tapgate.console import charts
from tapgate.console.actions import Action
from tapgate.console.page_request import PageRequest
from tapgate.console.site import Pages
from tapgate.http.endpoint import Reply

pages = Pages()

PERIODS: Final = {"day": "24 hours", "week": "7 days", "month": "30 days"}

ACTIONS = (
    Action(
        name="ledger.verify",
        endpoint="POST /api/v1/ledger/verify",
        title="Verify the ledger now?",
        description="Recalculates every balance from ledger entries. Payments continue; large "
        "ledgers take a few minutes.",
        button="Verify ledger",
        success_message="Ledger verified.",
        result_template="proof.html",
    ),
)


@pages.get("/console")
async def show_overview(request: PageRequest) -> Reply[bytes]:
    overview = await request.get("/api/v1/overview", request.query.pick("period"))
    return request.render(
        "overview.html",
        overview=overview,
        periods=PERIODS,
        volume=_build_chart(request, overview, "amount"),
        counts=_build_chart(request, overview, "completed", "failed"),
    )


def _build_chart(request: PageRequest, overview: Mapping[str, Any], *kinds: str) -> charts.Chart:
    zone = request.context.services.settings.timezone
    return charts.build_bar_chart(overview["buckets"], kinds, period=overview["period"], zone=zone)
