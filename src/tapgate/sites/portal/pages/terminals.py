"""Terminals: list, add, block and unblock."""

from typing import Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.page_request import PORTAL, PageRequest
from tapgate.sites.console.pages import processors
from tapgate.sites.console.site import Pages
from tapgate.sites.portal.components import find_action, get_owner_id

pages = Pages()

TERMINALS_PATH: Final = "/api/v1/processors/{id}/terminals"

ACTIONS: Final = (
    find_action(processors.ACTIONS, "terminal.add", result_template="portal/terminal_added.html"),
    find_action(processors.ACTIONS, "terminal.block"),
    find_action(processors.ACTIONS, "terminal.unblock"),
    find_action(processors.ACTIONS, "terminal.key"),
)


@pages.get(f"{PORTAL}/terminals")
async def list_terminals(request: PageRequest) -> Reply[bytes]:
    owner_id = get_owner_id(request)
    page = await request.get(TERMINALS_PATH, request.query.pick("cursor"), id=owner_id)
    return request.render("portal/terminals.html", page=page, owner_id=owner_id)
