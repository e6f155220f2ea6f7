"""Team: the merchant's managers and cashiers."""

from functools import partial
from typing import Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.components.owner_users import (
    MERCHANT_ROLES,
    USERS_PATH,
    build_invite_action,
)
from tapgate.sites.console.components.state_actions import build_state_action
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PORTAL, PageRequest
from tapgate.sites.console.site import Pages
from tapgate.sites.portal.components import get_owner_id

pages = Pages()

_build_state_action = partial(build_state_action, "team", f"{USERS_PATH}/{{id}}", "user")

ACTIONS: Final = (
    build_invite_action(
        "team.create", Field("role", kind="choice", choices=tuple(reversed(MERCHANT_ROLES)))
    ),
    _build_state_action(
        "disable", "Signs them out everywhere and blocks sign-in. You can enable them again."
    ),
    _build_state_action("enable", "They can sign in again with their current password."),
)


@pages.get(f"{PORTAL}/team")
async def list_users(request: PageRequest) -> Reply[bytes]:
    page = await request.get(USERS_PATH, request.query.pick("cursor"))
    return request.render("portal/team.html", page=page, owner_id=get_owner_id(request))
