"""Audit log and verification of its hash chain."""

import asyncio

from tapgate.console.components.lists import add_list_page
from tapgate.console.page_request import PageRequest
from tapgate.console.site import Pages
from tapgate.http.endpoint import Reply

pages = Pages()

_LOGS_PATH = "/api/v1/audit/logs"
_FILTERS = ("event", "actor_id", "resource_type", "resource_id", "result", "from", "to")
_NEWEST_LIMIT = 100  # sealing takes seconds, so the newest entries usually include a sealed one


add_list_page(pages, "/console/audit", _LOGS_PATH, "audit/list.html", _FILTERS)


@pages.get("/console/audit/verify")
async def verify_chain(request: PageRequest) -> Reply[bytes]:
    verification, newest = await asyncio.gather(
        request.get("/api/v1/audit/verify", request.query.pick("full")),
        request.get(_LOGS_PATH, {"limit": _NEWEST_LIMIT}),
    )
    last_sealed = next((entry for entry in newest["data"] if entry["hash"] is not None), None)
    return request.render("audit/verified.html", verification=verification, last_sealed=last_sealed)
