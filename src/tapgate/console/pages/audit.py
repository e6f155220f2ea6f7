"""The audit trail: who did what, and the proof that nobody has changed it since."""

import asyncio

from tapgate.console.site import Pages
from tapgate.console.visit import Visit
from tapgate.edge.endpoint import Reply

pages = Pages()

_LOGS = "/api/v1/audit/logs"
_FILTERS = ("event", "actor_id", "resource_type", "resource_id", "result", "from", "to")
_NEWEST = 100  # sealing takes seconds: among so many there is a sealed one


@pages.get("/console/audit")
async def trail(visit: Visit) -> Reply[bytes]:
    found = await visit.get(_LOGS, visit.query.pick(*_FILTERS, "cursor"))
    return visit.page("audit/list.html", found=found, filters=_FILTERS)


@pages.get("/console/audit/verify")
async def verify(visit: Visit) -> Reply[bytes]:
    outcome, newest = await asyncio.gather(
        visit.get("/api/v1/audit/verify", visit.query.pick("full")),
        visit.get(_LOGS, {"limit": _NEWEST}),
    )
    sealed = next((entry for entry in newest["data"] if entry["hash"] is not None), None)
    return visit.page("audit/verified.html", outcome=outcome, sealed=sealed)
