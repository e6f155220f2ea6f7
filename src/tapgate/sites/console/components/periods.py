"""List periods: presets and their dates."""

from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from tapgate.sites.console.page_request import PageRequest
from tapgate_client.clock import format_rfc3339, get_platform_day

#: The first three are the overview periods.
PRESETS: Final = {
    "day": "Last 24 hours",
    "week": "Last 7 days",
    "month": "Last 30 days",
    "today": "Today",
    "yesterday": "Yesterday",
    "this_month": "This month",
    "last_month": "Last month",
}


def resolve_period(request: PageRequest, default: str | None = None) -> dict[str, str]:
    """Return the API's filters `from` and `to` for the preset in the query, if there is one."""
    settings, now = request.context.services.settings, request.context.services.clock()
    return resolve_preset(request.query.get("period") or default, now, settings.timezone)


def resolve_preset(preset: str | None, now: datetime, zone: ZoneInfo) -> dict[str, str]:
    if preset == "day":
        # The 24 overview buckets: this hour and the 23 hours before.
        hour = now.astimezone(zone).replace(minute=0, second=0, microsecond=0).astimezone(UTC)
        return {"from": format_rfc3339(hour - timedelta(hours=23))}
    today = get_platform_day(now, zone)
    month = today.replace(day=1)
    last_month = month - timedelta(days=1)
    days = {
        "week": (today - timedelta(days=6), today),
        "month": (today - timedelta(days=29), today),
        "today": (today, today),
        "yesterday": (today - timedelta(days=1), today - timedelta(days=1)),
        "this_month": (month, today),
        "last_month": (last_month.replace(day=1), last_month),
    }
    if preset not in days:
        return {}
    first, last = days[preset]
    return {"from": first.isoformat(), "to": last.isoformat()}
