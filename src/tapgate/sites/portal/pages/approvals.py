"""Approvals: the viewer's requests that wait for the platform, and their results."""

import re
from typing import Any, Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.components.next_steps import tell_approval
from tapgate.sites.console.components.related import gather_by_name
from tapgate.sites.console.page_request import PORTAL, PageRequest
from tapgate.sites.console.pages.approvals import list_changes, list_result
from tapgate.sites.console.site import Pages
from tapgate.sites.portal.stages import list_approval_stages
from tapgate_client.schemas.approvals import ApprovalStatus

pages = Pages()

_APPROVALS_PATH: Final = "/api/v1/approvals"
#: Owner phrases in summaries, in both languages: `to merchant {}`, `au marchand {}`.
_OWNER: Final = r" (?:to|for|au|pour le|à) (?:merchant|partner|marchand|partenaire) {}(?= |,|$)"


@pages.get(f"{PORTAL}/approvals")
async def list_approvals(request: PageRequest) -> Reply[bytes]:
    parts = await gather_by_name(
        page=request.get(_APPROVALS_PATH, request.query.pick("status", "cursor")),
        owner=request.get("/api/v1/me/owner"),
    )
    page, name = parts["page"], parts["owner"]["name"]
    return request.render(
        "portal/approvals.html",
        page=page,
        statuses=tuple(ApprovalStatus),
        titles={row["id"]: _write_title(request, row, name) for row in page["data"]},
    )


def _write_title(request: PageRequest, approval: dict[str, Any], owner_name: str) -> str:
    """Return the translated summary without the owner name, which is the same in every row."""
    summary = request.translator.translate_summary(approval["summary"])
    return re.sub(_OWNER.format(re.escape(owner_name)), "", summary) or summary


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
