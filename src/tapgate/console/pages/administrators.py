"""Administrator list and actions."""

from typing import Final

from tapgate.console.actions import Action, Field
from tapgate.console.page_request import PageRequest
from tapgate.console.site import Pages
from tapgate.edge.endpoint import Reply

pages = Pages()

_LIST_PATH = "/api/v1/admin/users"
_ITEM_PATH = f"{_LIST_PATH}/{{id}}"

_ROLES: Final = (
    ("support_user", "Support user: registers, blocks and helps people"),
    ("finance_user", "Finance user: moves money and pays out"),
    ("compliance_user", "Compliance user: alerts, rules, the audit trail"),
    ("system_admin", "System admin: everything"),
)

ACTIONS = (
    Action(
        name="administrator.create",
        endpoint=f"POST {_LIST_PATH}",
        title="Add an administrator",
        description="They sign in here with the e-mail and the password that you give them.",
        button="Add administrator",
        fields=(
            Field("name", "Name"),
            Field("email", "E-mail", "email"),
            Field("role", "Role", "choice", _ROLES, hint="It cannot be changed later"),
            Field("password", "Password", "secret", hint="At least 12 characters, not the name"),
        ),
        success_message="The administrator is added.",
    ),
    Action(
        name="administrator.disable",
        endpoint=f"POST {_ITEM_PATH}/disable",
        title="Disable this administrator?",
        description="They are signed out everywhere at once and cannot sign in. It can be undone.",
        button="Disable",
        success_message="The administrator is disabled.",
        is_dangerous=True,
    ),
    Action(
        name="administrator.enable",
        endpoint=f"POST {_ITEM_PATH}/enable",
        title="Enable this administrator?",
        description="They can sign in again, with the password that they had.",
        button="Enable",
        success_message="The administrator is enabled.",
    ),
)


@pages.get("/console/administrators")
async def list_administrators(visit: PageRequest) -> Reply[bytes]:
    found = await visit.get(_LIST_PATH, visit.query.pick("cursor"))
    return visit.render("administrators/list.html", found=found)
