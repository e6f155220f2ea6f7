"""Finds alerts and support requests by ID."""

from typing import Final

from tapgate.business.search.model import Match, Search, build_match
from tapgate_client import ids
from tapgate_client.schemas.search import SearchType

#: Columns that are not personal, so they are disclosed also for restricted subscribers.
_SELECT_ALERT: Final = "SELECT alert_type, severity, status FROM alerts WHERE id = $1"
_SELECT_SUPPORT_REQUEST: Final = "SELECT status, created_at FROM support_requests WHERE id = $1"


async def find_alert(search: Search) -> list[Match]:
    alert_id = search.decode_id(ids.ALERT)
    row = alert_id and await search.database.fetchrow(_SELECT_ALERT, alert_id)
    if not row:
        return []
    return [
        build_match(
            SearchType.ALERT,
            search.text,
            row["alert_type"],
            row["severity"],
            status=row["status"],
            is_exact=True,
        )
    ]


async def find_support_request(search: Search) -> list[Match]:
    request_id = search.decode_id(ids.SUPPORT_REQUEST)
    row = request_id and await search.database.fetchrow(_SELECT_SUPPORT_REQUEST, request_id)
    if not row:
        return []
    return [
        build_match(
            SearchType.SUPPORT_REQUEST,
            search.text,
            "Support request",
            f"{row['created_at']:%Y-%m-%d %H:%M} UTC",
            status=row["status"],
            is_exact=True,
        )
    ]
