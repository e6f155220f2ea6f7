"""Finds alerts, support requests and API requests by ID."""

from typing import Final

from tapgate.business.search.model import Match, Search, build_match
from tapgate.business.staff.request_logs import queries as request_logs
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


async def find_api_requests(search: Search) -> list[Match]:
    """Find logged API requests by their own ID, `X-Request-ID` or idempotency key."""
    log_id = search.decode_id(ids.REQUEST_LOG)
    if log_id is not None:
        row = await request_logs.find(search.database, log_id, search.logged_since)
        rows = [] if row is None else [row]
    elif any(letter.isdigit() for letter in search.text):
        rows = await request_logs.find_by_key(search.database, search.text, search.logged_since)
    else:
        rows = []
    return [
        build_match(
            SearchType.API_REQUEST,
            ids.encode(ids.REQUEST_LOG, row["id"]),
            f"{row['method']} {row['path']}",
            row["caller_name"],
            row["status"],
            status=None,
            is_exact=True,
        )
        for row in rows[: search.limit]
    ]
