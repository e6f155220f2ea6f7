"""Form for agents' commission rules."""

from typing import Any, Final

from tapgate.http.endpoint import Reply
from tapgate.ledger import chart
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components.table_form import TableForm
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages

pages = Pages()

COMMISSION_RULES_PATH: Final = "/api/v1/commission-rules"
TIERS: Final = (1, 2, 3)
_COMMISSION_TYPES: Final = (chart.AGENT_CASHIN, chart.AGENT_CASHOUT)
COMMISSION_FORM: Final = TableForm(
    Action(
        name="commission.change",
        endpoint=f"PUT {COMMISSION_RULES_PATH}",
        title="Commission",
        description="Applies to all future cash-ins and cash-outs of every agent.",
        button="Save",
        success_message="Commission updated.",
    ),
    "limits/commission.html",
    "/console/limits",
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
    rules = await _load_rules(request)
    return COMMISSION_FORM.show(request, rules, {"commissions": group_by_tier(rules)})


@pages.post("/console/limits/commission")
async def change_commission(request: PageRequest) -> Reply[bytes]:
    rules, current = _parse_rules(request), await _load_rules(request)
    return await COMMISSION_FORM.submit(
        request, current, rules, {"commissions": group_by_tier([*rules.values()])}
    )


async def _load_rules(request: PageRequest) -> list[dict[str, Any]]:
    await request.require_access(COMMISSION_FORM.action.endpoint)
    rules: list[dict[str, Any]] = (await request.get(COMMISSION_RULES_PATH))["data"]
    return rules


def _parse_rules(request: PageRequest) -> dict[str, dict[str, Any]]:
    """Return the submitted rules. A row without a rate means no rule."""
    form, numbers = request.form, request.translator.numbers
    return {
        key: {"type": transaction_type, "tier": tier, "rate": rate, "minimum_amount": minimum}
        for transaction_type in _COMMISSION_TYPES
        for tier in TIERS
        for key in [f"{transaction_type}_{tier}"]
        if (rate := numbers.clean(form.get(f"rate_{key}"))) is not None
        for minimum in [numbers.clean(form.get(f"minimum_amount_{key}")) or "0"]
    }
