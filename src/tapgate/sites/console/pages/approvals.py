"""Approvals: the inbox, and held requests with their history."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components.next_steps import tell_approval
from tapgate.sites.console.components.related import get_audit
from tapgate.sites.console.components.rule_effects import list_effects
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate.sites.console.translation.translator import Translator
from tapgate_client.schemas.approvals import ApprovalStatus, Operation

pages = Pages()

_APPROVALS_PATH: Final = "/api/v1/approvals"
_APPROVAL_PATH: Final = f"{_APPROVALS_PATH}/{{id}}"
_PAGE_SIZE: Final = 25
_MAX_SHOWN: Final = 5
#: Pages of settings and lists -> operations whose pending requests they show. The page of a record
#: shows those that concern the record.
PAGE_OPERATIONS: Final[Mapping[str, tuple[Operation, ...]]] = {
    "/console/limits": (
        Operation.FEE_RULES,
        Operation.COMMISSION_RULES,
        Operation.ACCOUNT_RULES,
    ),
    "/console/compliance/rules": (Operation.COMPLIANCE_RULES,),
    "/console/approvals/rules": (Operation.APPROVAL_RULES,),
    "/console/approvals/rules/edit": (Operation.APPROVAL_RULES,),
    "/console/settings": (Operation.BRANDING,),
    "/console/keysets": (Operation.KEYSETS,),
    "/console/webhooks": (Operation.WEBHOOK_ENDPOINTS,),
    "/console/api-keys": (Operation.API_KEYS,),
    "/console/administrators": (Operation.ADMIN_USERS,),
    "/console/bank-accounts": (Operation.BANK_ACCOUNTS,),
    "/console/batches": (Operation.BATCHES,),
    "/console/payouts": (Operation.PAYOUTS,),
}

TABS: Final = {
    "pending": "Waiting",
    "executed": "Executed",
    "failed": "Failed",
    "rejected": "Rejected",
    "all": "All",
}

ACTIONS: Final = (
    Action(
        name="approval.approve",
        endpoint=f"POST {_APPROVAL_PATH}/approve",
        title="Approve this request?",
        description="With the last approval that it needs, the request is executed immediately.",
        button="Approve",
        success_message="Request approved.",
        result_template="approvals/link.html",
        result_field="disclosed",
    ),
    Action(
        name="approval.reject",
        endpoint=f"POST {_APPROVAL_PATH}/reject",
        title="Reject this request?",
        description="The request is not executed. This can't be undone.",
        button="Reject",
        fields=(Field("reason", kind="long", hint="Visible to the admin who made the request"),),
        success_message="Request rejected.",
        is_dangerous=True,
    ),
    Action(
        name="approval.cancel",
        endpoint=f"POST {_APPROVAL_PATH}/cancel",
        title="Cancel this request?",
        description="The request is not executed. This can't be undone.",
        button="Cancel request",
        success_message="Request canceled.",
        is_dangerous=True,
    ),
)


class _Change(NamedTuple):
    label: str
    name: str
    old: Any
    new: Any


@pages.get("/console/approvals")
async def list_approvals(request: PageRequest) -> Reply[bytes]:
    tab = request.query.get("status") or ApprovalStatus.PENDING
    page = await request.get(
        _APPROVALS_PATH,
        {**get_filters(request), "limit": _PAGE_SIZE, **request.query.pick("cursor")},
    )
    return request.render(
        "approvals/list.html", page=page, tab=tab, tabs=TABS, operations=tuple(Operation)
    )


def get_filters(request: PageRequest) -> dict[str, str]:
    """Return the API's filters for the list page's query."""
    filters = {
        "status": ApprovalStatus.PENDING.value,
        **request.query.pick("status", "operation", "resource_id"),
    }
    if filters["status"] == "all":
        del filters["status"]
    return filters


@pages.get("/console/approvals/banner")
async def show_banner(request: PageRequest) -> Reply[bytes]:
    """Return a notice about the pending requests for a record or a page, or nothing."""
    operations = PAGE_OPERATIONS.get(request.query.get("page") or "")
    queries: list[dict[str, str]] = (
        [{"resource_id": request.query.get("resource_id") or ""}]
        if operations is None
        else [{"operation": operation.value} for operation in operations]
    )
    found = await asyncio.gather(
        *(
            request.get(
                _APPROVALS_PATH,
                {"status": ApprovalStatus.PENDING, "limit": _MAX_SHOWN, **query},
            )
            for query in queries
        )
    )
    pending = [approval for page in found for approval in page["data"]]
    return request.render("approvals/banner.html", pending=pending[:_MAX_SHOWN])


@pages.get("/console/approvals/{id}")
async def show_approval(request: PageRequest, id: str) -> Reply[bytes]:
    approval = await request.get(_APPROVAL_PATH, id=id)
    is_pending = approval["status"] == ApprovalStatus.PENDING
    is_maker = approval["maker"] == request.principal.id
    return request.render(
        "approvals/approval.html",
        has_secret=approval.get("disclosed", False),
        approval=approval,
        next_step=tell_approval(request, approval),
        changes=list_changes(approval["changes"], request.translator),
        effects=list_effects(request, approval),
        result=list_result(approval["result"] or {}),
        can_cancel=is_pending and is_maker,
        can_decide=is_pending
        and not is_maker
        and request.principal.role in approval["roles"]
        and request.principal.id not in approval["approvers"],
        is_last=len(approval["approvers"]) + 1 >= approval["required_approvers"],
        audit=await get_audit(request, id),
    )


def list_changes(changes: dict[str, Any], translator: Translator) -> list[_Change]:
    """Return the changed values. Of a list of rules, only those that were removed or added."""
    rows = []
    for name, (old, new) in changes.items():
        items = [*_to_list(old), *_to_list(new)]
        if items and all(isinstance(item, dict) for item in items):
            removed = [item for item in old or [] if item not in (new or [])]
            added = [item for item in new or [] if item not in (old or [])]
            removed_label, added_label = (
                translator.translate("Removed rule"),
                translator.translate("New rule"),
            )
            rows += [_Change(removed_label, name, item, None) for item in removed]
            rows += [_Change(added_label, name, None, item) for item in added]
        else:
            rows.append(_Change(translator.translate_field(name), name, old, new))
    return rows


def _to_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def list_result(result: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the name and text for each value in a result, including its nested records."""
    rows: list[tuple[str, str]] = []
    for name, value in result.items():
        if isinstance(value, str | int):
            rows.append((name, str(value)))
        elif isinstance(value, dict):
            rows += [(f"{name} {inner}", text) for inner, text in list_result(value)]
    return rows
