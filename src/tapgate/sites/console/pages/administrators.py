"""Administrator list and actions."""

from functools import partial
from typing import Final

import msgspec

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components.related import gather_by_name, get_audit
from tapgate.sites.console.components.state_actions import build_state_action
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client.clock import format_rfc3339
from tapgate_client.schemas.admin import UserType

pages = Pages()

_LIST_PATH = "/api/v1/admin/users"
_ITEM_PATH = f"{_LIST_PATH}/{{id}}"

_SHOWN_ENTRIES: Final = 10
_SIGN_INS: Final = ("admin.login", "admin.logout")
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
        description="You get a link for them. With it, they set their own password. Until a "
        "third admin confirms the account, it cannot approve your requests.",
        fields=(
            Field("name"),
            Field("email", kind="email"),
            Field("role", kind="choice", choices=_ROLES),
        ),
        success_message="Administrator added",
        result_template="administrators/invitation.html",
    ),
    Action(
        name="administrator.update",
        endpoint=f"PUT {_ITEM_PATH}",
        title="Edit this administrator",
        description="A new role signs them out everywhere.",
        button="Save",
        fields=(Field("name"), Field("role", kind="choice", choices=_ROLES)),
        success_message="Administrator changed.",
    ),
    Action(
        name="administrator.reset_password",
        endpoint=f"POST {_ITEM_PATH}/reset-password",
        title="Reset this administrator's password?",
        description="Signs them out everywhere. You get a link with which they set a new one. "
        "If they use single sign-on, the password replaces it.",
        button="Reset password",
        success_message="Password reset",
        result_template="administrators/invitation.html",
        is_dangerous=True,
    ),
    Action(
        name="administrator.new_link",
        endpoint=f"POST {_ITEM_PATH}/reset-password",
        title="New link",
        button="Create link",
        description="The earlier link stops working. With the new one, the person sets a password.",
        success_message="Link created",
        result_template="administrators/invitation.html",
    ),
    Action(
        name="administrator.reset_factors",
        endpoint=f"POST {_ITEM_PATH}/reset-factors",
        title="Remove this administrator's second factors?",
        description="Signs them out everywhere. Make sure that the request comes from them.",
        button="Reset second factors",
        success_message="Second factors removed.",
        is_dangerous=True,
    ),
    Action(
        name="administrator.confirm",
        endpoint=f"POST {_ITEM_PATH}/confirm",
        title="Confirm this account?",
        description="Check with the person that the account is theirs. They can then approve "
        "requests of the admins who asked for their account or have seen their link, and these "
        "admins can approve theirs.",
        button="Confirm account",
        success_message="Account confirmed.",
    ),
    msgspec.structs.replace(
        _build_state_action(
            "disable", "Signs them out everywhere and blocks sign-in. You can enable them again."
        ),
        preview_path=f"{_ITEM_PATH}/offboarding",
        preview_template="administrators/offboarding.html",
    ),
    _build_state_action("enable", "They can sign in again with their current password."),
)


@pages.get("/console/administrators")
async def list_administrators(request: PageRequest) -> Reply[bytes]:
    """Show the platform's own people or, with `type=owner`, the users of merchants and others."""
    filters = {"type": UserType.PLATFORM.value} | request.query.pick("type", "cursor")
    if filters["type"] not in tuple(UserType):
        filters["type"] = UserType.PLATFORM.value
    page = await request.get(_LIST_PATH, filters)
    return request.render("administrators/list.html", page=page, type=filters["type"])


@pages.get("/console/administrators/{id}")
async def show_administrator(request: PageRequest, id: str) -> Reply[bytes]:
    parts = await gather_by_name(
        admin=request.get(_ITEM_PATH, id=id),
        offboarding=request.get(f"{_ITEM_PATH}/offboarding", id=id),
        audit=get_audit(request, id),
        activity=request.get("/api/v1/audit/logs", {"actor_id": id, "limit": _SHOWN_ENTRIES}),
    )
    if parts["audit"] is not None:  # the latest actions list these
        entries = [entry for entry in parts["audit"]["data"] if entry["event"] not in _SIGN_INS]
        parts["audit"] = {**parts["audit"], "data": entries}
    return request.render(
        "administrators/administrator.html",
        role_labels=dict(_ROLES),
        now=format_rfc3339(request.context.services.clock()),
        **parts,
    )
