from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from tapgate_client.clock import format_rfc3339, get_platform_day
from tapgate_client.errors import TABLE, ApiError, Code, invalid_field, unavailable


def test_every_error_code_has_a_status_and_a_unique_text() -> None:
    assert set(TABLE) == set(Code)
    assert all(400 <= status < 600 and text for status, text in TABLE.values())
    assert len({text for _, text in TABLE.values()}) == len(TABLE)


def test_error_body_has_code_message_and_details() -> None:
    assert ApiError(Code.FORBIDDEN).body() == {"error": "Forbidden", "code": "FORBIDDEN"}
    full = ApiError(Code.INVALID_PIN, "Wrong PIN", details={"attempts_remaining": 2})
    assert full.body() == {
        "error": "Invalid PIN",
        "code": "INVALID_PIN",
        "message": "Wrong PIN",
        "details": {"attempts_remaining": 2},
    }
    expected = {"fields": {"pin": "must be 4 digits"}}
    assert invalid_field("pin", "must be 4 digits").body()["details"] == expected
    assert unavailable("Later").headers == {"Retry-After": "1"}


def test_times_are_formatted_in_utc_and_truncated_to_milliseconds() -> None:
    moment = datetime(2026, 1, 31, 23, 59, 59, 123_999, tzinfo=timezone(timedelta(hours=2)))
    assert format_rfc3339(moment) == "2026-01-31T21:59:59.123Z"


def test_day_is_determined_in_the_platform_time_zone() -> None:
    moment = datetime(2026, 1, 31, 23, 30, tzinfo=UTC)
    assert get_platform_day(moment, ZoneInfo("UTC")).isoformat() == "2026-01-31"
    assert get_platform_day(moment, ZoneInfo("Africa/Nairobi")).isoformat() == "2026-02-01"
