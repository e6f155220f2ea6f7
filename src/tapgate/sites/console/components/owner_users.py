"""Users of a merchant, partner or agent, on the owner's page."""

from collections.abc import Awaitable
from typing import Any, Final

from tapgate.sites.console.actions import Action
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PageRequest
from tapgate_client.schemas.admin import AdminRole

USERS_PATH: Final = "/api/v1/admin/users"
MERCHANT_ROLES: Final = (
    ("merchant_manager", "Manager: everything, payouts and team included"),
    ("merchant_cashier", "Cashier: today's payments, refunds and disputes"),
)
_MAX_USERS: Final = 20
_PERSON: Final = (Field("name"), Field("email", kind="email"))


def build_invite_action(name: str, role: Field, title: str = "Invite a user") -> Action:
    """Return the action that invites a user for the owner in the form's query."""
    return Action(
        name=name,
        endpoint=f"POST {USERS_PATH}",
        title=title,
        description="You get a link for them. With it, they set their own password.",
        fields=(*_PERSON, role, Field("owner_id", kind="hidden")),
        success_message="User invited",
        result_template="administrators/invitation.html",
    )


def _fix_role(role: AdminRole) -> Field:
    return Field("role", kind="hidden", value=role.value)


ACTIONS: Final = (
    build_invite_action(
        "merchant_user.create", Field("role", kind="choice", choices=MERCHANT_ROLES)
    ),
    build_invite_action("partner_user.create", _fix_role(AdminRole.PARTNER_USER)),
    build_invite_action("agent_user.create", _fix_role(AdminRole.AGENT_USER)),
)


def get_users(request: PageRequest, owner_id: str) -> Awaitable[Any]:
    """Return an owner's newest users, or None if the admin may not read them."""
    return request.get_if_allowed(USERS_PATH, {"owner_id": owner_id, "limit": _MAX_USERS})
