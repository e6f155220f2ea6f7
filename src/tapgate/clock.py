"""What time it is. Everything asks here, so that a test can say what time it is."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    return datetime.now(UTC)


def format_rfc3339(moment: datetime) -> str:
    """`2026-01-31T23:59:59.123Z`"""
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.removesuffix("+00:00") + "Z"


def get_platform_day(moment: datetime, zone: ZoneInfo) -> date:
    """The calendar day that a limit counts in."""
    return moment.astimezone(zone).date()
