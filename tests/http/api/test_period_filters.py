"""The `from` and `to` filters."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from cases import each
from tapgate_client.schemas.fields import InvalidValueError
from tapgate_client.schemas.periods import PeriodBoundRule, parse_period_end, parse_period_start

CAIRO = ZoneInfo("Africa/Cairo")


def test_date_covers_the_whole_day_in_the_platform_time_zone() -> None:
    assert parse_period_start("2026-01-31", CAIRO) == datetime(2026, 1, 30, 22, tzinfo=UTC)
    assert parse_period_end("2026-01-31", CAIRO) == datetime(2026, 1, 31, 22, tzinfo=UTC)


def test_period_end_includes_the_millisecond_of_the_given_time() -> None:
    bound = PeriodBoundRule().check("2026-01-31T12:00:00+01:00")
    assert parse_period_start(bound, CAIRO) == datetime(2026, 1, 31, 11, tzinfo=UTC)
    assert parse_period_end(bound, CAIRO) == datetime(2026, 1, 31, 11, 0, 0, 1000, tzinfo=UTC)


def test_missing_bound_is_unbounded() -> None:
    assert parse_period_start(None, CAIRO) is None
    assert parse_period_end(None, CAIRO) is None


@each(
    "text",
    ["", "today", "2026-1-31", "2026-02-30", "20260131", "2026-01-31T12:00:00", "0999-12-31"],
)
def test_invalid_bound_is_rejected(text: str) -> None:
    with pytest.raises(InvalidValueError) as raised:
        PeriodBoundRule().check(text)
    assert "2026-01-31" in raised.value.problems[""]
