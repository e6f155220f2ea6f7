from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tapgate_client.clock import format_rfc3339


@each(
    "microsecond, text",
    [
        (0, "2026-01-31T23:59:59.000Z"),
        (999, "2026-01-31T23:59:59.000Z"),
        (5_000, "2026-01-31T23:59:59.005Z"),
        (123_456, "2026-01-31T23:59:59.123Z"),
    ],
)
def test_time_has_milliseconds(microsecond: int, text: str) -> None:
    moment = datetime(2026, 1, 31, 23, 59, 59, microsecond, UTC)
    assert format_rfc3339(moment) == text


@given(st.datetimes(timezones=st.just(UTC)))
def test_time_is_truncated_to_milliseconds(moment: datetime) -> None:
    expected = moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    assert format_rfc3339(moment) == expected


def test_time_of_another_zone_is_converted_to_utc() -> None:
    moment = datetime(2026, 7, 1, 0, 30, 0, 1_000, ZoneInfo("Africa/Lagos"))
    assert format_rfc3339(moment) == "2026-06-30T23:30:00.001Z"
