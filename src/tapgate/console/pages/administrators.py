"""Administrator list and actions."""

from functools import partial
from typing import Final

from tapgate.console.actions import Action
from tapgate.console.components.lists import add_list_page
from tapgate.console.components.state_actions import build_state_action
from tapgate.console.form_fields import Field
from tapgate.console.site import Pages

pages = Pages()

_LIST_PATH = "/api/v1/admin/users"
_ITEM_PATH = f"{_LIST_PATH}/{{id}}"

_ROLES: Final = (
    ("support_user", "Support: manages customers, cards and agents"),
    ("finance_user", "Finance: moves money and makes payouts"),
    ("compliance_user", "Compliance: reviews alerts, rules and the audit log"),
    ("system_admin", "System admin: full access"),
)

_build_state_action = partial(build_state_action, "administrator", _ITEM_PATH, "administrator")

ACTIONS = (
    Action(
        name="administrator.create",
        endpoint=f"POST {_LIST_PATH}",
        title="Add an administrator",
        description="Share the email and password with them. They use these to sign in.",
        fields=(
            Field("name", "Name"),
            Field("email", "Email", "email"),
            Field("role", "Role", "choice", _ROLES, hint="Can't be changed later"),
            Field(
                "password",
                "Password",
                "secret",
                hint="At least 12 characters, different from the name",
            ),
        ),
        success_message="Administrator added.",
    ),
    _build_state_action(
        "disable", "Signs them out everywhere and blocks sign-in. You can enable them again."
    ),
    _build_state_action("enable", "They can sign in again with their current password."),
)


add_list_page(pages, "/console/administrators", _LIST_PATH, "administrators/list.html")
