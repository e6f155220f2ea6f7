"""Sales of the last days, compared with the days before, and an owner's other movements."""

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

from tapgate.sites.console import charts
from tapgate.sites.console.components.overview_chart import compute_change
from tapgate.sites.console.components.periods import resolve_preset
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.portal.components import get_owner_id, get_owner_type, is_merchant
from tapgate.sites.portal.pages.terminals import SUMMARY_PATH
from tapgate_client import money
from tapgate_client.clock import get_platform_day
from tapgate_client.schemas.admin import AdminRole
from tapgate_client.schemas.owners import OwnerType
from tapgate_client.schemas.transactions import MoneyFlow, TransactionType

_TOTALS_PATH: Final = "/api/v1/transactions/totals"
_WEEK: Final = 7
#: Flows of an owner's business, each with its own totals: a sum of cash-ins and cash-outs, or of
#: top-ups and deposits, means nothing.
_FLOWS: Final[Mapping[OwnerType, tuple[MoneyFlow, ...]]] = {
    OwnerType.PROCESSOR: (MoneyFlow.PAYMENTS,),
    OwnerType.PARTNER: (MoneyFlow.MONEY_IN,),
    OwnerType.AGENT: (MoneyFlow.MONEY_IN, MoneyFlow.MONEY_OUT),
}
#: Movement between the owner and the platform, and the period of its total.
_INTERNAL: Final[Mapping[OwnerType, tuple[TransactionType, str]]] = {
    OwnerType.PARTNER: (TransactionType.PARTNER_DEPOSIT, "week"),
    OwnerType.AGENT: (TransactionType.COMMISSION_PAYOUT, "this_month"),
}
Day = dict[str, Any]


class FlowSales(NamedTuple):
    today: Day
    yesterday: Day
    #: Amount of the last seven days with today, and its change from the seven days before. Both
    #: are None for a cashier, who sees only today and yesterday.
    week: str | None
    change: Decimal | None
    days: list[Day]


class Sales(NamedTuple):
    flows: dict[MoneyFlow, FlowSales]
    #: None if there was no sale in all the days, and for a cashier.
    chart: charts.Chart | None
    day_count: int


async def load_sales(request: PageRequest) -> Sales:
    """Load the sales of a merchant, or the transactions of a partner or an agent, by flow.

    A merchant's summary counts fees as the settlement account pays them, and has all days. Callers
    without it get list totals, day by day.
    """
    today = get_platform_day(request.now, request.context.services.settings.timezone)
    flows = {
        flow: await _load_flow(request, flow, today) for flow in _FLOWS[get_owner_type(request)]
    }
    days = next(iter(flows.values())).days
    has_chart = request.principal.role != AdminRole.MERCHANT_CASHIER and any(
        day["count"] for sales in flows.values() for day in sales.days
    )
    return Sales(flows, _build_chart(request, flows) if has_chart else None, len(days))


async def load_internal(request: PageRequest) -> Any:
    """Return a partner's deposits or an agent's commission payouts; None for a merchant."""
    if (internal := _INTERNAL.get(get_owner_type(request))) is None:
        return None
    kind, preset = internal
    period = resolve_preset(preset, request.now, request.context.services.settings.timezone)
    return await request.get(_TOTALS_PATH, {"type": kind.value, **period})


async def _load_flow(request: PageRequest, flow: MoneyFlow, today: date) -> FlowSales:
    if request.principal.role == AdminRole.MERCHANT_CASHIER:
        days = [await _load_totals(request, flow, day, day) for day in _list_days(today, 2)]
        return FlowSales(days[-1], days[-2], week=None, change=None, days=days)
    if is_merchant(request) and request.can_access(f"GET {SUMMARY_PATH}"):
        days = await _load_summary(request, today)
        before = _add_up(days[:_WEEK])
    else:
        days = [await _load_totals(request, flow, day, day) for day in _list_days(today, _WEEK)]
        last = today - timedelta(days=_WEEK)
        totals = await _load_totals(request, flow, last - timedelta(days=_WEEK - 1), last)
        before = totals["amount"]
    week = _add_up(days[-_WEEK:])
    return FlowSales(days[-1], days[-2], week, compute_change(week, before), days)


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


async def _load_totals(request: PageRequest, flow: MoneyFlow, first: date, last: date) -> Day:
    period = {"from": first.isoformat(), "to": last.isoformat()}
    totals = await request.get(_TOTALS_PATH, {**period, "flow": flow.value})
    return {**totals, "date": first, "refunds": None}


def _build_chart(request: PageRequest, flows: Mapping[MoneyFlow, FlowSales]) -> charts.Chart:
    zone = request.context.services.settings.timezone
    buckets = [
        {
            "start": datetime.combine(days[0]["date"], time(), zone).isoformat(),
            **{flow: day["amount"] for flow, day in zip(flows, days, strict=True)},
        }
        for days in zip(*(sales.days for sales in flows.values()), strict=True)
    ]
    return charts.build_bar_chart(
        buckets, tuple(flows), period="week", zone=zone, translate=request.translate
    )
