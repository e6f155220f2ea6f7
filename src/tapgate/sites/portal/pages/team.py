"""Team: the merchant's managers and cashiers."""

from functools import partial
from typing import Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components.state_actions import build_state_action
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PORTAL, PageRequest
from tapgate.sites.console.site import Pages
from tapgate.sites.portal.components import get_owner_id

pages = Pages()

_LIST_PATH: Final = "/api/v1/admin/users"
_ROLES: Final = (
    ("merchant_cashier", "Cashier: today's payments, refunds and disputes"),
    ("merchant_manager", "Manager: everything, payouts and team included"),
)

_build_state_action = partial(build_state_action, "team", f"{_LIST_PATH}/{{id}}", "user")

ACTIONS: Final = (
    Action(
        name="team.create",
        endpoint=f"POST {_LIST_PATH}",
        title="Invite a user",
        description="You get a link for them. With it, they set their own password.",
        fields=(
            Field("name"),
            Field("email", kind="email"),
            Field("role", kind="choice", choices=_ROLES),
            Field("owner_id", kind="hidden"),
        ),
        success_message="User invited",
        result_template="administrators/invitation.html",
    ),
    _build_state_action(
        "disable", "Signs them out everywhere and blocks sign-in. You can enable them again."
    ),
    _build_state_action("enable", "They can sign in again with their current password."),
)


@pages.get(f"{PORTAL}/team")
async def list_users(request: PageRequest) -> Reply[bytes]:
    page = await request.get(_LIST_PATH, request.query.pick("cursor"))
    return request.render("portal/team.html", page=page, owner_id=get_owner_id(request))
