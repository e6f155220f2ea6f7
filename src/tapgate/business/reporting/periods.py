"""Period buckets: hours, or calendar days in the platform's time zone."""

from datetime import UTC, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from tapgate_client.clock import get_platform_day

_HOURS_BY_PERIOD: Final = {"day": 24}
_DAYS_BY_PERIOD: Final = {"week": 7, "month": 30}


def list_bucket_starts(period: str, now: datetime, zone: ZoneInfo) -> list[datetime]:
    """Return the start of each bucket; the last bucket contains `now`."""
    if period in _HOURS_BY_PERIOD:
        return _list_hour_starts(_HOURS_BY_PERIOD[period], now, zone)
    today = get_platform_day(now, zone)
    days = [today - timedelta(days=ago) for ago in reversed(range(_DAYS_BY_PERIOD[period]))]
    return [datetime.combine(day, time(), zone).astimezone(UTC) for day in days]


def get_previous_end(period: str, now: datetime) -> datetime:
    """Return the time in the previous period that corresponds to `now`."""
    hours = _HOURS_BY_PERIOD.get(period) or 24 * _DAYS_BY_PERIOD[period]
    return now - timedelta(hours=hours)


def _list_hour_starts(count: int, now: datetime, zone: ZoneInfo) -> list[datetime]:
    local_hour = now.astimezone(zone).replace(minute=0, second=0, microsecond=0)
    last = local_hour.astimezone(UTC)
    return [last - timedelta(hours=ago) for ago in reversed(range(count))]
