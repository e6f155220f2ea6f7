"""The audit trail: who did what, and the proof that nobody has changed it since."""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from tapgate.console.site import Pages
from tapgate.console.visit import Visit, at
from tapgate.edge.endpoint import Reply
from tapgate.errors import ApiError, Code

pages = Pages()

_LOGS = "/api/v1/audit/logs"
_FILTERS = ("event", "actor_id", "resource_type", "resource_id", "result", "from", "to")
#: What may be a restricted person's, and where it is asked for.
_PEOPLES: Final = {
    "subscriber": "/api/v1/subscribers/{id}",
    "card": "/api/v1/cards/{id}",
    "transaction": "/api/v1/transactions/{id}",
}
_NEWEST = 100  # sealing takes seconds: among so many there is a sealed one


@pages.get("/console/audit")
async def trail(visit: Visit) -> Reply[bytes]:
    found = await visit.get(_LOGS, visit.query.pick(*_FILTERS, "cursor"))
    closed = await _closed(visit, found["data"])
    return visit.page("audit/list.html", found=found, filters=_FILTERS, closed=closed)


async def _closed(visit: Visit, entries: Iterable[dict[str, Any]]) -> set[str]:
    """About what no more is told than that something was done: it is of restricted people."""
    asked = {
        one["resource_id"]: at(_PEOPLES[one["resource_type"]], {"id": one["resource_id"]})
        for one in entries
        if one["resource_type"] in _PEOPLES and one["resource_id"]
    }
    closed = await asyncio.gather(*(_is_closed(visit, path) for path in asked.values()))
    return {one for one, is_closed in zip(asked, closed, strict=True) if is_closed}


async def _is_closed(visit: Visit, path: str) -> bool:
    try:
        await visit.get(path)
    except ApiError as error:
        return error.code is Code.OTP_REQUIRED
    return False


@pages.get("/console/audit/verify")
async def verify(visit: Visit) -> Reply[bytes]:
    outcome, newest = await asyncio.gather(
        visit.get("/api/v1/audit/verify"), visit.get(_LOGS, {"limit": _NEWEST})
    )
    sealed = next((entry for entry in newest["data"] if entry["hash"] is not None), None)
    return visit.page("audit/verified.html", outcome=outcome, sealed=sealed)
