"""The current time. Services take a `Clock`, so that tests can control the time."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import msgspec

Clock = Callable[[], datetime]

_encode_json = msgspec.json.Encoder().encode


def system_clock() -> datetime:
    return datetime.now(UTC)


def format_rfc3339(moment: datetime) -> str:
    """Format a time in UTC with milliseconds: `2026-01-31T23:59:59.123Z`."""
    # Several times as fast as `isoformat`. The encoder omits the fraction of a whole second.
    text = _encode_json(moment.astimezone(UTC)).decode()
    return f"{text[1:24]}Z" if moment.microsecond else f"{text[1:20]}.000Z"


def get_platform_day(moment: datetime, zone: ZoneInfo) -> date:
    """Return the calendar day in the platform's time zone, by which daily limits are counted."""
    return moment.astimezone(zone).date()
