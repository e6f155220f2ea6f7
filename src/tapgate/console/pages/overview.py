"""The first page: how the business is doing."""

from tapgate.console.site import Pages
from tapgate.console.visit import Visit
from tapgate.edge.endpoint import Reply

pages = Pages()


@pages.get("/console")
async def overview(visit: Visit) -> Reply[bytes]:
    return visit.page("overview.html")
