"""The filters `from` and `to`."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from tapgate.edge.fields import InvalidValueError
from tapgate.edge.periods import PeriodBoundRule, parse_period_end, parse_period_start

CAIRO = ZoneInfo("Africa/Cairo")


def test_a_day_is_that_of_the_platforms_calendar_and_belongs_as_a_whole() -> None:
    assert parse_period_start("2026-01-31", CAIRO) == datetime(2026, 1, 30, 22, tzinfo=UTC)
    assert parse_period_end("2026-01-31", CAIRO) == datetime(2026, 1, 31, 22, tzinfo=UTC)


def test_a_time_is_a_time_and_its_last_millisecond_belongs() -> None:
    bound = PeriodBoundRule().check("2026-01-31T12:00:00+01:00")
    assert parse_period_start(bound, CAIRO) == datetime(2026, 1, 31, 11, tzinfo=UTC)
    assert parse_period_end(bound, CAIRO) == datetime(2026, 1, 31, 11, 0, 0, 1000, tzinfo=UTC)


def test_without_a_bound_there_is_none() -> None:
    assert parse_period_start(None, CAIRO) is None
    assert parse_period_end(None, CAIRO) is None


@pytest.mark.parametrize(
    "text",
    ["", "today", "2026-1-31", "2026-02-30", "20260131", "2026-01-31T12:00:00", "0999-12-31"],
)
def test_what_is_neither_a_time_nor_a_day_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError) as refusal:
        PeriodBoundRule().check(text)
    assert "2026-01-31" in refusal.value.problems[""]
