"""The first page: how the business is doing."""

from collections.abc import Mapping
from typing import Any, Final

from tapgate.console import charts
from tapgate.console.acts import Act
from tapgate.console.site import Pages
from tapgate.console.visit import Visit
from tapgate.edge.endpoint import Reply

pages = Pages()

PERIODS: Final = {"day": "24 hours", "week": "7 days", "month": "30 days"}

ACTS = (
    Act(
        name="ledger.verify",
        endpoint="POST /api/v1/ledger/verify",
        title="Prove the books now?",
        explains="Every balance is computed again from the entries alone. Payments go on "
        "meanwhile; with millions of transactions it takes some time.",
        button="Prove the books",
        done="The books were proven",
        shows="proof.html",
    ),
)


@pages.get("/console")
async def overview(visit: Visit) -> Reply[bytes]:
    found = await visit.get("/api/v1/overview", visit.query.pick("period"))
    return visit.page(
        "overview.html",
        found=found,
        periods=PERIODS,
        volume=_drawn(visit, found, "amount"),
        counts=_drawn(visit, found, "completed", "failed"),
    )


def _drawn(visit: Visit, found: Mapping[str, Any], *kinds: str) -> charts.Chart:
    zone = visit.call.services.settings.timezone
    return charts.bars(found["buckets"], kinds, period=found["period"], zone=zone)
