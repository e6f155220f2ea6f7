"""The filters `from` and `to`."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from tapgate.edge.fields import Unacceptable
from tapgate.edge.periods import BoundRule, end_of, start_of

CAIRO = ZoneInfo("Africa/Cairo")


def test_a_day_is_that_of_the_platforms_calendar_and_belongs_as_a_whole() -> None:
    assert start_of("2026-01-31", CAIRO) == datetime(2026, 1, 30, 22, tzinfo=UTC)
    assert end_of("2026-01-31", CAIRO) == datetime(2026, 1, 31, 22, tzinfo=UTC)


def test_a_time_is_a_time_and_its_last_millisecond_belongs() -> None:
    bound = BoundRule().check("2026-01-31T12:00:00+01:00")
    assert start_of(bound, CAIRO) == datetime(2026, 1, 31, 11, tzinfo=UTC)
    assert end_of(bound, CAIRO) == datetime(2026, 1, 31, 11, 0, 0, 1000, tzinfo=UTC)


def test_without_a_bound_there_is_none() -> None:
    assert start_of(None, CAIRO) is None
    assert end_of(None, CAIRO) is None


@pytest.mark.parametrize(
    "text",
    ["", "today", "2026-1-31", "2026-02-30", "20260131", "2026-01-31T12:00:00", "0999-12-31"],
)
def test_what_is_neither_a_time_nor_a_day_is_refused(text: str) -> None:
    with pytest.raises(Unacceptable) as refusal:
        BoundRule().check(text)
    assert "2026-01-31" in refusal.value.problems[""]
