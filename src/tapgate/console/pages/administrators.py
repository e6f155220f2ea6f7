"""Administrators: who runs the platform, in which role."""

from typing import Final

from tapgate.console.acts import Act, Field
from tapgate.console.site import Pages
from tapgate.console.visit import Visit
from tapgate.edge.endpoint import Reply

pages = Pages()

_ALL = "/api/v1/admin/users"
_ONE = f"{_ALL}/{{id}}"

_ROLES: Final = (
    ("support_user", "Support user: registers, blocks and helps people"),
    ("finance_user", "Finance user: moves money and pays out"),
    ("compliance_user", "Compliance user: alerts, rules, the audit trail"),
    ("system_admin", "System admin: everything"),
)

ACTS = (
    Act(
        name="administrator.create",
        endpoint=f"POST {_ALL}",
        title="Add an administrator",
        explains="They sign in here with the e-mail and the password that you give them.",
        button="Add administrator",
        fields=(
            Field("name", "Name"),
            Field("email", "E-mail", "email"),
            Field("role", "Role", "choice", _ROLES, hint="It cannot be changed later"),
            Field("password", "Password", "secret", hint="At least 12 characters, not the name"),
        ),
        done="The administrator is added.",
    ),
    Act(
        name="administrator.disable",
        endpoint=f"POST {_ONE}/disable",
        title="Disable this administrator?",
        explains="They are signed out everywhere at once and cannot sign in. It can be undone.",
        button="Disable",
        done="The administrator is disabled.",
        dangerous=True,
    ),
    Act(
        name="administrator.enable",
        endpoint=f"POST {_ONE}/enable",
        title="Enable this administrator?",
        explains="They can sign in again, with the password that they had.",
        button="Enable",
        done="The administrator is enabled.",
    ),
)


@pages.get("/console/administrators")
async def administrators(visit: Visit) -> Reply[bytes]:
    found = await visit.get(_ALL, visit.query.pick("cursor"))
    return visit.page("administrators/list.html", found=found)
