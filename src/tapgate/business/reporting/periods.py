"""Overview periods, divided into hours, or into calendar days in the platform's time zone."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from tapgate.ledger.effects.rollups import get_bucket_start
from tapgate_client.clock import get_platform_day
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.reporting import MAX_OVERVIEW_DAYS, OverviewPeriod, OverviewQuery

_DAYS_BY_PERIOD: Final = {OverviewPeriod.WEEK: 7, OverviewPeriod.MONTH: 30}
_HOURS: Final = 24
#: Rollups have no later bucket.
NO_END: Final = datetime.max.replace(tzinfo=UTC)


class Period(NamedTuple):
    """The start of each bucket, and the end of the last one."""

    name: OverviewPeriod
    starts: list[datetime]
    end: datetime = NO_END


def build_period(query: OverviewQuery, now: datetime, zone: ZoneInfo) -> Period:
    """Return the requested period. Unless its dates are given, its last bucket contains `now`."""
    if query.period is OverviewPeriod.CUSTOM or query.from_ or query.to:
        first, last = _parse_days(query)
        return _build_days(first, last, zone)
    if query.period is OverviewPeriod.DAY:
        return Period(query.period, _list_hour_starts(now, zone))
    today = get_platform_day(now, zone)
    first = today - timedelta(days=_DAYS_BY_PERIOD[query.period] - 1)
    return Period(query.period, _build_days(first, today, zone).starts)


def build_previous_period(period: Period, now: datetime, zone: ZoneInfo) -> Period:
    """Return the period of the same length before, up to the same time if `period` has not ended.

    It ends with a rollup bucket.
    """
    if period.name is OverviewPeriod.CUSTOM:
        days = timedelta(days=len(period.starts))
        first = get_platform_day(period.starts[0], zone)
        return _build_days(first - days, first - timedelta(days=1), zone)
    hours = 24 * _DAYS_BY_PERIOD.get(period.name, 1)
    end = get_bucket_start(now - timedelta(hours=hours))
    return build_period(OverviewQuery(period=period.name), end, zone)._replace(end=end)


def _parse_days(query: OverviewQuery) -> tuple[date, date]:
    fields = {}
    if query.from_ is None or query.to is None:
        missing = {"from": query.from_, "to": query.to}
        fields = {name: "is required" for name, value in missing.items() if value is None}
        raise _build_error(fields)
    first, last = date.fromisoformat(query.from_), date.fromisoformat(query.to)
    if last < first:
        raise _build_error({"to": "must not be before from"})
    if (last - first).days >= MAX_OVERVIEW_DAYS:
        raise _build_error({"to": f"must be at most {MAX_OVERVIEW_DAYS} days after from"})
    return first, last


def _build_error(fields: dict[str, str]) -> ApiError:
    name, problem = next(iter(fields.items()))
    return ApiError(Code.VALIDATION_FAILED, f"{name} {problem}", details={"fields": fields})


def _build_days(first: date, last: date, zone: ZoneInfo) -> Period:
    days = [first + timedelta(days=number) for number in range((last - first).days + 2)]
    *starts, end = [datetime.combine(day, time(), zone).astimezone(UTC) for day in days]
    return Period(OverviewPeriod.CUSTOM, starts, end)


def _list_hour_starts(now: datetime, zone: ZoneInfo) -> list[datetime]:
    local_hour = now.astimezone(zone).replace(minute=0, second=0, microsecond=0)
    last = local_hour.astimezone(UTC)
    return [last - timedelta(hours=ago) for ago in reversed(range(_HOURS))]
