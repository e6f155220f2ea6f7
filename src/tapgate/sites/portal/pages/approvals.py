"""Approvals: the viewer's requests that wait for the platform, and their results."""

from typing import Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.components.next_steps import tell_approval
from tapgate.sites.console.page_request import PORTAL, PageRequest
from tapgate.sites.console.pages.approvals import list_changes, list_result
from tapgate.sites.console.site import Pages
from tapgate.sites.portal.stages import list_approval_stages
from tapgate_client.schemas.approvals import ApprovalStatus

pages = Pages()

_APPROVALS_PATH: Final = "/api/v1/approvals"


@pages.get(f"{PORTAL}/approvals")
async def list_approvals(request: PageRequest) -> Reply[bytes]:
    page = await request.get(_APPROVALS_PATH, request.query.pick("status", "cursor"))
    return request.render("portal/approvals.html", page=page, statuses=tuple(ApprovalStatus))


@pages.get(f"{PORTAL}/approvals/{{id}}")
async def show_approval(request: PageRequest, id: str) -> Reply[bytes]:
    approval = await request.get(f"{_APPROVALS_PATH}/{{id}}", id=id)
    return request.render(
        "portal/approval.html",
        has_secret=approval.get("disclosed", False),
        approval=approval,
        is_pending=approval["status"] == ApprovalStatus.PENDING,
        next_step=tell_approval(request, approval),
        stages=list_approval_stages(approval),
        changes=list_changes(approval["changes"], request.translator),
        result=list_result(approval["result"] or {}),
    )
