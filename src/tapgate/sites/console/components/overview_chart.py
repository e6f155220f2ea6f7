"""Figures and charts of the overview, for the home page and the reports."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from tapgate.sites.console import charts
from tapgate.sites.console.labels import get_flow_label
from tapgate.sites.console.page_request import PageRequest
from tapgate_client.schemas.reporting import OverviewPeriod

TRANSACTIONS_PATH: Final = "/console/transactions"
PERIODS: Final = {"day": "24 hours", "week": "7 days", "month": "30 days"}


class Figure(NamedTuple):
    """Number with its list. `change` compares it with the previous period, in percent."""

    label: str
    path: str
    #: An amount of money, unless `is_money` is false: then a number, or a float in percent.
    value: str | float | None
    change: Decimal | None
    is_money: bool = True
    completed: int | None = None


def build_transactions_path(overview: Mapping[str, Any], **filters: str) -> str:
    """Return the path to the transactions of the period."""
    if overview["period"] == OverviewPeriod.CUSTOM:
        zone = ZoneInfo(overview["timezone"])
        first, last = (
            datetime.fromisoformat(overview[name]).astimezone(zone) for name in ("from", "to")
        )
        # The period ends at midnight, when the next day begins.
        days = {"from": f"{first:%Y-%m-%d}", "to": f"{last - timedelta(seconds=1):%Y-%m-%d}"}
    else:
        days = {"period": overview["period"]}
    return f"{TRANSACTIONS_PATH}?{urlencode({**days, **filters})}"


def build_figures(overview: Mapping[str, Any]) -> list[Figure]:
    """Return the four figures of the home page: payments, transactions, success and fees."""
    totals, previous = overview["totals"], overview["previous"]["totals"]
    payments, *_ = build_flow_figures(overview)
    path, rate = build_transactions_path(overview), totals["success_rate"]
    before = previous["success_rate"]
    return [
        payments,
        Figure(
            "Transactions",
            path,
            totals["count"],
            compute_change(totals["count"], previous["count"]),
            is_money=False,
        ),
        Figure(
            "Success rate",
            build_transactions_path(overview, status="failed"),
            None if rate is None else 100.0 * rate,
            None if rate is None or not before else compute_change(str(rate), str(before)),
            is_money=False,
        ),
        Figure("Fees", path, totals["fees"], compute_change(totals["fees"], previous["fees"])),
    ]


def build_flow_figures(overview: Mapping[str, Any]) -> list[Figure]:
    """Return the volume of each flow of money, payments first."""
    previous = {flow["flow"]: flow for flow in overview["previous"]["flows"]}
    return [
        Figure(
            label=get_flow_label(flow["flow"]),
            path=build_transactions_path(overview, flow=flow["flow"]),
            value=flow["amount"],
            change=compute_change(flow["amount"], previous[flow["flow"]]["amount"]),
            completed=flow["completed"],
        )
        for flow in overview["flows"]
    ]


def compute_change(value: str | int, previous: str | int) -> Decimal | None:
    """Return the change in percent, or None if there is nothing to compare with."""
    before = Decimal(previous)
    return 100 * (Decimal(value) - before) / before if before > 0 else None


def build_chart(
    request: PageRequest, overview: Mapping[str, Any], *kinds: str, compare: bool = False
) -> charts.Chart:
    zone = request.context.services.settings.timezone
    return charts.build_bar_chart(
        overview["buckets"],
        kinds,
        period=overview["period"],
        zone=zone,
        translate=request.translate,
        previous=overview["previous"]["buckets"] if compare else (),
    )
