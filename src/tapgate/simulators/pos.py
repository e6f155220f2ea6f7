"""The POS terminal: which terminals and cards there are, and a key to sign with."""

from typing import Final

from tapgate.console.site import Pages
from tapgate.console.visit import Visit
from tapgate.edge.endpoint import Reply

pages: Final = Pages()


@pages.get("/simulator/pos")
async def terminal(visit: Visit) -> Reply[bytes]:
    return visit.page("pos.html")
