"""Buckets of a period: no gaps, and aligned with rollup buckets."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

from cases import each
from tapgate.ledger.rollups import get_bucket_start
from tapgate.reporting.periods import list_bucket_starts

NOW = datetime(2026, 3, 10, 12, 34, 56, tzinfo=UTC)


def test_day_period_is_divided_into_24_hours() -> None:
    starts = list_bucket_starts("day", NOW, ZoneInfo("Africa/Freetown"))
    assert len(starts) == 24
    assert starts[-1] == datetime(2026, 3, 10, 12, tzinfo=UTC)
    assert {later - earlier for earlier, later in pairwise(starts)} == {timedelta(hours=1)}


@each("period, days", [("week", 7), ("month", 30)])
def test_week_and_month_are_divided_into_days_of_the_platform_timezone(
    period: str, days: int
) -> None:
    starts = list_bucket_starts(period, NOW, ZoneInfo("Asia/Kathmandu"))
    assert len(starts) == days
    assert starts[-1] == datetime(2026, 3, 9, 18, 15, tzinfo=UTC)


def test_day_of_a_daylight_saving_change_is_one_bucket() -> None:
    starts = list_bucket_starts(
        "week", datetime(2026, 3, 30, 12, tzinfo=UTC), ZoneInfo("Europe/Berlin")
    )
    lengths = [later - earlier for earlier, later in pairwise(starts)]
    assert sorted(lengths)[0] == timedelta(hours=23)
    assert sorted(lengths)[1:] == [timedelta(hours=24)] * 5


@each("period", ["day", "week", "month"])
def test_buckets_start_on_a_quarter_hour_in_every_timezone(period: str) -> None:
    for zone in available_timezones():
        for now in (NOW, NOW + timedelta(days=180)):
            starts = list_bucket_starts(period, now, ZoneInfo(zone))
            assert starts == sorted(set(starts)), zone
            assert all(get_bucket_start(start) == start for start in starts), zone
            assert starts[-1] <= now, zone
