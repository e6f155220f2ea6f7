"""Sales of the last days, compared with the days before."""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

from tapgate.sites.console import charts
from tapgate.sites.console.components.overview_chart import compute_change
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.portal.components import get_owner_id, is_merchant
from tapgate.sites.portal.pages.terminals import SUMMARY_PATH
from tapgate_client import money
from tapgate_client.clock import get_platform_day
from tapgate_client.schemas.admin import AdminRole
from tapgate_client.schemas.transactions import MoneyFlow

_TOTALS_PATH: Final = "/api/v1/transactions/totals"
_WEEK: Final = 7
_KIND: Final = "payments"
Day = dict[str, Any]


class Sales(NamedTuple):
    today: Day
    yesterday: Day
    #: Amount of the last seven days with today, and its change from the seven days before. Both
    #: are None for a cashier, who sees only today and yesterday.
    week: str | None
    change: Decimal | None
    #: None if there was no sale in all the days, and for a cashier.
    chart: charts.Chart | None
    day_count: int


async def load_sales(request: PageRequest) -> Sales:
    """Load the sales of a merchant, or the transactions of a partner or an agent.

    A merchant's summary counts fees as the settlement account pays them, and has all days. Callers
    without it get list totals, day by day.
    """
    today = get_platform_day(request.now, request.context.services.settings.timezone)
    if request.principal.role == AdminRole.MERCHANT_CASHIER:
        yesterday, current = [await _load_totals(request, day, day) for day in _list_days(today, 2)]
        return Sales(current, yesterday, week=None, change=None, chart=None, day_count=2)
    if is_merchant(request) and request.can_access(f"GET {SUMMARY_PATH}"):
        days = await _load_summary(request, today)
        before = _add_up(days[:_WEEK])
    else:
        days = [await _load_totals(request, day, day) for day in _list_days(today, _WEEK)]
        last = today - timedelta(days=_WEEK)
        totals = await _load_totals(request, last - timedelta(days=_WEEK - 1), last)
        before = totals["amount"]
    week = _add_up(days[-_WEEK:])
    return Sales(
        today=days[-1],
        yesterday=days[-2],
        week=week,
        change=compute_change(week, before),
        chart=_build_chart(request, days) if any(day["count"] for day in days) else None,
        day_count=len(days),
    )


def _list_days(last: date, count: int) -> list[date]:
    return [last - timedelta(days=ago) for ago in reversed(range(count))]


def _add_up(days: list[Day]) -> str:
    return f"{sum((Decimal(day['amount']) for day in days), Decimal(0)):f}"


async def _load_summary(request: PageRequest, today: date) -> list[Day]:
    """Return two weeks of a merchant's sales, also the days without movements."""
    days = _list_days(today, 2 * _WEEK)
    period = {"from": days[0].isoformat(), "to": today.isoformat()}
    summary = await request.get(SUMMARY_PATH, period, id=get_owner_id(request))
    found = {row["date"]: row for row in summary["days"]}
    zero = money.format_decimal(0, summary["currency"])
    empty = {"sales_count": 0, "sales": zero, "fees": zero, "refunds": zero}
    return [_read_summary_day(day, found.get(day.isoformat(), empty)) for day in days]


def _read_summary_day(day: date, row: Mapping[str, Any]) -> Day:
    return {
        "date": day,
        "count": row["sales_count"],
        "amount": row["sales"],
        "fees": row["fees"],
        "refunds": row["refunds"],
    }


async def _load_totals(request: PageRequest, first: date, last: date) -> Day:
    flow = {"flow": MoneyFlow.PAYMENTS.value} if is_merchant(request) else {}
    period = {"from": first.isoformat(), "to": last.isoformat()}
    totals = await request.get(_TOTALS_PATH, {**period, **flow})
    return {**totals, "date": first, "refunds": None}


def _build_chart(request: PageRequest, days: list[Day]) -> charts.Chart:
    zone = request.context.services.settings.timezone
    buckets = [
        {"start": datetime.combine(day["date"], time(), zone).isoformat(), _KIND: day["amount"]}
        for day in days
    ]
    return charts.build_bar_chart(
        buckets, (_KIND,), period="week", zone=zone, translate=request.translate
    )
