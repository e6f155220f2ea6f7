"""The Retry-After header, as seconds and as an HTTP date."""

from datetime import UTC, datetime, timedelta

from cases import each
from tapgate.webhooks import retry_schedule
from tapgate.webhooks.retry_after import MAX_RETRY_AFTER, parse_retry_after

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@each(
    "value, expected",
    [
        ("0", timedelta(0)),
        ("120", timedelta(minutes=2)),
        (" 120 ", timedelta(minutes=2)),
        ("Sat, 31 Jan 2026 12:10:00 GMT", timedelta(minutes=10)),
        ("Saturday, 31-Jan-26 12:10:00 GMT", timedelta(minutes=10)),
        ("Sat Jan 31 12:10:00 2026", timedelta(minutes=10)),
        ("Sat, 31 Jan 2026 11:00:00 GMT", timedelta(0)),
        ("86401", MAX_RETRY_AFTER),
        ("9" * 5000, MAX_RETRY_AFTER),
        ("Fri, 31 Dec 9999 23:59:59 GMT", MAX_RETRY_AFTER),
    ],
)
def test_seconds_and_dates_are_parsed_and_limited_to_the_maximum(
    value: str, expected: timedelta
) -> None:
    assert parse_retry_after(value, NOW) == expected


@each(
    "value",
    [
        *(None, "", "-1", "1.5", "soon", "٣", "Sat", ",", "0x10"),
        "Sat, 99 Jan 2026 12:00:00 GMT",
        "Sat, 31 Jan 99999999999999999999 12:00:00 GMT",
    ],
)
def test_invalid_value_is_ignored(value: str | None) -> None:
    assert parse_retry_after(value, NOW) is None


def test_retry_after_extends_the_scheduled_delay_and_never_shortens_it() -> None:
    minute = timedelta(minutes=1)
    assert retry_schedule.get_retry_delay(1, minute) == minute
    second = retry_schedule.get_retry_delay(2, minute)
    assert second is not None and second >= timedelta(
        seconds=0.9 * retry_schedule.RETRY_DELAYS_SECONDS[1]
    )
    assert retry_schedule.get_retry_delay(10, minute) is None
