"""Approval rules: each as a sentence with the people who could approve today, and their form."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console import step_up
from tapgate.sites.console.form_errors import describe_value_error
from tapgate.sites.console.labels import humanize
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.rendering import end_sentence
from tapgate.sites.console.site import Pages
from tapgate.sites.console.translation.translator import Translator, source_text
from tapgate_client.errors import ApiError
from tapgate_client.schemas.admin import PLATFORM_ROLES, AdminRole
from tapgate_client.schemas.approvals import AMOUNT_OPERATIONS, GUARDABLE_OPERATIONS, Operation

pages = Pages()

#: An error names at most this many operations, and counts more.
_MAX_NAMED_OPERATIONS: Final = 3

_RULES_PATH: Final = "/api/v1/admin/approval-rules"
_PAGE_PATH: Final = "/console/approvals/rules"
_DAY_SECONDS: Final = 86_400

#: Heading -> the operations below it.
_GROUPS: Final[Mapping[str, tuple[Operation, ...]]] = {
    source_text("Money"): (
        Operation.AGENT_FUND,
        Operation.PARTNER_FUND,
        Operation.WALLET_TRANSFER,
        Operation.PROCESSOR_TRANSFER,
        Operation.PAYOUTS,
        Operation.BANK_ACCOUNTS,
        Operation.BATCHES,
        Operation.REFUNDS,
        Operation.REVERSALS,
        Operation.REVIEW_RELEASE,
        Operation.OVERDRAFT_LIMITS,
    ),
    source_text("Fees, limits and rules"): (
        Operation.FEE_RULES,
        Operation.COMMISSION_RULES,
        Operation.ACCOUNT_RULES,
        Operation.COMPLIANCE_RULES,
        Operation.BRANDING,
    ),
    source_text("People and keys"): (
        Operation.ADMIN_USERS,
        Operation.API_KEYS,
        Operation.MERCHANT_KEYS,
        Operation.KEYSETS,
        Operation.WEBHOOK_ENDPOINTS,
    ),
    source_text("Customers and agents"): (
        Operation.SUBSCRIBER_PHONE,
        Operation.KYC_LEVEL,
        Operation.CARD_LIMITS,
        Operation.AGENT_PHONE,
    ),
}


def build_recommended_rules() -> list[dict[str, Any]]:
    """Return rules under which no admin can create money, or change rules or rights, alone."""
    admins, treasury = [AdminRole.SYSTEM_ADMIN], [AdminRole.SYSTEM_ADMIN, AdminRole.FINANCE_USER]
    compliance = [AdminRole.SYSTEM_ADMIN, AdminRole.COMPLIANCE_USER]
    roles = {
        Operation.COMPLIANCE_RULES: compliance,
        Operation.SUBSCRIBER_PHONE: compliance,
        Operation.CARD_LIMITS: compliance,
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


@pages.get(_PAGE_PATH)
async def show_rules(request: PageRequest) -> Reply[bytes]:
    record = await request.get(_RULES_PATH)
    rules = [
        rule | {"people": people}
        for rule, people in zip(record["data"], record["people"], strict=False)
    ]
    guarded = {rule["operation"] for rule in rules}
    return request.render(
        "approvals/rules.html",
        groups={
            label: [
                rule
                for operation in operations
                for rule in rules or build_recommended_rules()
                if rule["operation"] == operation
            ]
            for label, operations in _GROUPS.items()
        },
        rule_change=record["people"][-1] if rules else None,
        unguarded=[operation for operation in GUARDABLE_OPERATIONS if operation not in guarded],
        endpoint=f"PUT {_RULES_PATH}",
    )


@pages.get(f"{_PAGE_PATH}/edit")
async def edit_rules(request: PageRequest) -> Reply[bytes]:
    await request.require_access(f"PUT {_RULES_PATH}")
    return _render_form(request, (await request.get(_RULES_PATH))["data"])


@pages.post(_PAGE_PATH)
async def change_rules(request: PageRequest) -> Reply[bytes]:
    is_recommended = request.form.get("recommended") is not None
    rules = build_recommended_rules() if is_recommended else _parse_rules(request)
    try:
        await request.send("PUT", _RULES_PATH, {"data": rules})
    except ApiError as error:
        if step_up.is_answered_by_prompt(error):
            raise
        return _render_form(request, rules, error)
    return request.redirect(_PAGE_PATH, "Approval rules updated.")


def _parse_rules(request: PageRequest) -> list[dict[str, Any]]:
    """Return the submitted rules: one for each operation that is checked."""
    form = request.form
    return [
        {
            "operation": operation,
            "above": request.translator.numbers.clean(form.get(f"above_{operation}")),
            "roles": form.get_all(f"roles_{operation}"),
            "approvers": int(form.get(f"approvers_{operation}") == "2") + 1,
            "expires_in": _DAY_SECONDS,
        }
        for operation in GUARDABLE_OPERATIONS
        if f"roles_{operation}" in form
    ]


def _render_form(
    request: PageRequest, rules: list[dict[str, Any]], error: ApiError | None = None
) -> Reply[bytes]:
    by_operation = {rule["operation"]: rule for rule in rules}
    return request.render(
        "approvals/rules_form.html",
        200 if error is None else error.status,
        rules=by_operation,
        # Several rules of one operation, or another expiry, would be lost by the form.
        is_editable=len(by_operation) == len(rules)
        and all(rule["expires_in"] == _DAY_SECONDS for rule in rules),
        all_rules=rules,
        groups=_GROUPS,
        amount_operations=AMOUNT_OPERATIONS,
        roles=PLATFORM_ROLES,
        endpoint=f"PUT {_RULES_PATH}",
        problem=error and _describe_error(request, rules, error),
    )


def _describe_error(request: PageRequest, rules: list[dict[str, Any]], error: ApiError) -> str:
    """Return an error's message, with the operation and the label of each invalid field."""
    missing = (error.details or {}).get("missing")
    if missing:
        return _describe_missing(request, missing)
    problems = []
    for path, problem in (error.details or {}).get("fields", {}).items():
        index, _, name = path.removeprefix("data[").partition("].")
        if not (index.isdigit() and int(index) < len(rules)):
            return end_sentence(request.translator.translate_error(error))
        operation = humanize(rules[int(index)]["operation"])
        label = request.translate(
            "{operation}: {field}",
            operation=request.translator.translate_label(operation),
            field=request.translator.translate_field(name).lower(),
        )
        problems.append(end_sentence(describe_value_error(label, problem, request.translator)))
    return " ".join(problems) or end_sentence(request.translator.translate_error(error))


def _describe_missing(request: PageRequest, missing: list[dict[str, Any]]) -> str:
    """Return one sentence for each set of roles with too few people, and what to do about it.

    The recommended rules have about 25 operations, but only three sets of roles.
    """
    translator = request.translator
    operations = defaultdict[str, list[str]](list)
    for item in missing:
        roles = [translator.translate_label(humanize(role)) for role in item["roles"]]
        problem = translator.translate_plural(
            item["approvers"],
            "{available} of {count} person with the role {roles} can approve requests of {maker}.",
            "{available} of {count} people with the role {roles} can approve requests of {maker}.",
            maker=item["maker"],
            roles=f" {translator.translate('or')} ".join(roles),
            available=translator.numbers.format_number(item["available"]),
        )
        operations[problem].append(translator.translate_label(humanize(item["operation"])))
    sentences = [
        f"{_name_operations(translator, names)}: {problem}" for problem, names in operations.items()
    ]
    advice = translator.translate(
        "Add administrators. They count once they have set a password and are confirmed."
    )
    return " ".join([*sentences, advice])


def _name_operations(translator: Translator, names: list[str]) -> str:
    if len(names) <= _MAX_NAMED_OPERATIONS:
        return ", ".join(names)
    return translator.translate_plural(len(names), "{count} operation", "{count} operations")
