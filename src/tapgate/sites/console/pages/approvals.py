"""Approvals: the inbox, held requests with their history, and the approval rules."""

from typing import Any, Final, NamedTuple

from tapgate.http.endpoint import Reply
from tapgate.sites.console import step_up
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components.related import get_audit
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate.sites.console.translation.translator import Translator
from tapgate_client.errors import ApiError
from tapgate_client.schemas.admin import PLATFORM_ROLES, AdminRole
from tapgate_client.schemas.approvals import AMOUNT_OPERATIONS, ApprovalStatus, Operation

pages = Pages()

_APPROVALS_PATH: Final = "/api/v1/approvals"
_APPROVAL_PATH: Final = f"{_APPROVALS_PATH}/{{id}}"
_RULES_PATH: Final = "/api/v1/admin/approval-rules"
_PAGE_SIZE: Final = 25
_DAY_SECONDS: Final = 86_400

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


def build_recommended_rules() -> list[dict[str, Any]]:
    """Return rules under which no admin can create money, or change rules or rights, alone."""
    admins, treasury = [AdminRole.SYSTEM_ADMIN], [AdminRole.SYSTEM_ADMIN, AdminRole.FINANCE_USER]
    compliance = [AdminRole.SYSTEM_ADMIN, AdminRole.COMPLIANCE_USER]
    roles = {
        Operation.COMPLIANCE_RULES: compliance,
        Operation.SUBSCRIBER_PHONE: compliance,
        Operation.REVIEW_RELEASE: compliance,
        Operation.KYC_LEVEL: compliance,
        Operation.MERCHANT_KEYS: admins,
        Operation.WEBHOOK_ENDPOINTS: admins,
        Operation.BRANDING: admins,
        Operation.ADMIN_USERS: admins,
        Operation.API_KEYS: admins,
        Operation.KEYSETS: admins,
    }
    return [
        {
            "operation": operation,
            "above": None,
            "roles": roles.get(operation, treasury),
            "approvers": 1,
            "expires_in": _DAY_SECONDS,
        }
        for operation in Operation
        if operation is not Operation.APPROVAL_RULES
    ]


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
    """Return a notice about the pending requests that concern a record, or nothing."""
    resource_id = request.query.get("resource_id") or ""
    page = await request.get(
        _APPROVALS_PATH,
        {"status": ApprovalStatus.PENDING, "resource_id": resource_id, "limit": 5},
    )
    return request.render("approvals/banner.html", pending=page["data"])


@pages.get("/console/approvals/rules")
async def show_rules(request: PageRequest) -> Reply[bytes]:
    rules = (await request.get(_RULES_PATH))["data"]
    return _render_rules(request, rules)


@pages.post("/console/approvals/rules")
async def change_rules(request: PageRequest) -> Reply[bytes]:
    is_recommended = request.form.get("recommended") is not None
    rules = build_recommended_rules() if is_recommended else _parse_rules(request)
    try:
        await request.send("PUT", _RULES_PATH, {"data": rules})
    except ApiError as error:
        if step_up.concerns_session(error):
            raise
        return _render_rules(request, rules, error)
    return request.redirect("/console/approvals/rules", "Approval rules updated.")


@pages.get("/console/approvals/{id}")
async def show_approval(request: PageRequest, id: str) -> Reply[bytes]:
    approval = await request.get(_APPROVAL_PATH, id=id)
    is_pending = approval["status"] == ApprovalStatus.PENDING
    is_maker = approval["maker"] == request.principal.id
    return request.render(
        "approvals/approval.html",
        has_secret=approval.get("disclosed", False),
        approval=approval,
        changes=_list_changes(approval["changes"], request.translator),
        result=_list_result(approval["result"] or {}),
        can_cancel=is_pending and is_maker,
        can_decide=is_pending
        and not is_maker
        and request.principal.role in approval["roles"]
        and request.principal.id not in approval["approvers"],
        audit=await get_audit(request, id),
    )


def _list_changes(changes: dict[str, Any], translator: Translator) -> list[_Change]:
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


def _list_result(result: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the name and text for each value in a result, including its nested records."""
    rows: list[tuple[str, str]] = []
    for name, value in result.items():
        if isinstance(value, str):
            rows.append((name, value))
        elif isinstance(value, dict):
            rows += [(f"{name} {inner}", text) for inner, text in _list_result(value)]
    return rows


def _parse_rules(request: PageRequest) -> list[dict[str, Any]]:
    """Return the submitted rules: one for each operation that is checked."""
    form = request.form
    return [
        {
            "operation": operation,
            "above": form.get(f"above_{operation}"),
            "roles": form.get_all(f"roles_{operation}"),
            "approvers": int(form.get(f"approvers_{operation}") == "2") + 1,
            "expires_in": _DAY_SECONDS,
        }
        for operation in Operation
        if f"roles_{operation}" in form
    ]


def _render_rules(
    request: PageRequest, rules: list[dict[str, Any]], error: ApiError | None = None
) -> Reply[bytes]:
    by_operation = {rule["operation"]: rule for rule in rules}
    return request.render(
        "approvals/rules.html",
        200 if error is None else error.status,
        rules=by_operation,
        # Several rules of one operation, or another expiry, would be lost by the form.
        is_editable=len(by_operation) == len(rules)
        and all(rule["expires_in"] == _DAY_SECONDS for rule in rules),
        all_rules=rules,
        recommended=build_recommended_rules(),
        operations=[item for item in Operation if item is not Operation.APPROVAL_RULES],
        amount_operations=AMOUNT_OPERATIONS,
        roles=PLATFORM_ROLES,
        endpoint=f"PUT {_RULES_PATH}",
        error=error,
    )
