"""Home page: the balance and the latest payments."""

import asyncio
from typing import Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.page_request import PORTAL, PageRequest
from tapgate.sites.console.site import Pages

pages = Pages()

_LATEST: Final = 10


@pages.get(PORTAL)
async def show_home(request: PageRequest) -> Reply[bytes]:
    owner, latest = await asyncio.gather(
        request.get("/api/v1/me/owner"),
        request.get("/api/v1/transactions", {"limit": _LATEST}),
    )
    return request.render("portal_home.html", owner=owner, payments=latest["data"])
