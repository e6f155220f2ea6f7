"""Form for agents' commission rules."""

from typing import Any, Final

from tapgate.http.endpoint import Reply
from tapgate.ledger import chart
from tapgate.sites.console import stale_check, step_up
from tapgate.sites.console.actions import Action
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate.sites.console.typed_input import clean_amount
from tapgate_client.errors import ApiError

pages = Pages()

COMMISSION_RULES_PATH: Final = "/api/v1/commission-rules"
TIERS: Final = (1, 2, 3)
_COMMISSION_TYPES: Final = (chart.AGENT_CASHIN, chart.AGENT_CASHOUT)
_CHANGE_ACTION: Final = Action(
    name="commission.change",
    endpoint=f"PUT {COMMISSION_RULES_PATH}",
    title="Commission",
    description="Applies to all future cash-ins and cash-outs of every agent.",
    button="Save",
    success_message="Commission updated.",
)

#: type -> tier -> rule, or None if there is no rule
RulesByTier = dict[str, dict[int, dict[str, Any] | None]]


def group_by_tier(rules: list[dict[str, Any]]) -> RulesByTier:
    by_type_and_tier = {(rule["type"], rule["tier"]): rule for rule in rules}
    return {
        transaction_type: {tier: by_type_and_tier.get((transaction_type, tier)) for tier in TIERS}
        for transaction_type in _COMMISSION_TYPES
    }


@pages.get("/console/limits/commission")
async def show_commission_form(request: PageRequest) -> Reply[bytes]:
    await request.require_access(_CHANGE_ACTION.endpoint)
    rules = (await request.get(COMMISSION_RULES_PATH))["data"]
    return _render_form(request, rules, stale_check.fingerprint(rules))


@pages.post("/console/limits/commission")
async def change_commission(request: PageRequest) -> Reply[bytes]:
    await request.require_access(_CHANGE_ACTION.endpoint)
    rules = _parse_rules(request)
    try:
        stale_check.require_unchanged(
            request.form.get("seen"), (await request.get(COMMISSION_RULES_PATH))["data"]
        )
        await request.send("PUT", COMMISSION_RULES_PATH, {"data": rules})
    except ApiError as error:
        if step_up.concerns_session(error):
            raise
        return _render_form(request, rules, request.form.get("seen"), error)
    return request.redirect("/console/limits", _CHANGE_ACTION.success_message)


def _parse_rules(request: PageRequest) -> list[dict[str, Any]]:
    """Return the submitted rules. A row without a rate means no rule."""
    return [
        {"type": transaction_type, "tier": tier, "rate": rate, "minimum_amount": minimum or "0"}
        for transaction_type in _COMMISSION_TYPES
        for tier in TIERS
        if (rate := request.form.get(f"rate_{transaction_type}_{tier}")) is not None
        for minimum in [clean_amount(request.form.get(f"minimum_amount_{transaction_type}_{tier}"))]
    ]


def _render_form(
    request: PageRequest,
    rules: list[dict[str, Any]],
    fingerprint: str | None,
    error: ApiError | None = None,
) -> Reply[bytes]:
    fields = {} if error is None else (error.details or {}).get("fields", {})
    field_errors = {}
    for path, message in fields.items():
        index, _, name = path.removeprefix("data[").partition("].")
        if index.isdigit() and int(index) < len(rules):
            rule = rules[int(index)]
            field_errors[f"{name}_{rule['type']}_{rule['tier']}"] = message
    return request.render(
        "limits/commission.html",
        action=_CHANGE_ACTION.translate(request.translator),
        address=request.context.path,
        error=error,
        is_marked=bool(field_errors),
        field_errors=field_errors,
        commissions=group_by_tier(rules),
        fingerprint=fingerprint,
    )
