"""Form for agents' commission rules."""

from typing import Any, Final

from tapgate.console import stale_check
from tapgate.console.actions import Action
from tapgate.console.page_request import PageRequest
from tapgate.console.site import Pages
from tapgate.edge.endpoint import Reply
from tapgate.errors import ApiError, Code
from tapgate.ledger import chart

pages = Pages()

COMMISSION_RULES_PATH: Final = "/api/v1/commission-rules"
TIERS: Final = (1, 2, 3)
_COMMISSION_TYPES: Final = (chart.AGENT_CASHIN, chart.AGENT_CASHOUT)
_CHANGE_ACTION: Final = Action(
    name="commission.change",
    endpoint=f"PUT {COMMISSION_RULES_PATH}",
    title="Commission",
    description="Applies to the next cash-in and cash-out of every agent.",
    button="Change the commission",
    success_message="The commission is changed.",
)

#: type -> tier -> rule, or None if there is no rule
RulesByTier = dict[str, dict[int, dict[str, Any] | None]]


def group_by_tier(rules: list[dict[str, Any]]) -> RulesByTier:
    found = {(rule["type"], rule["tier"]): rule for rule in rules}
    return {kind: {tier: found.get((kind, tier)) for tier in TIERS} for kind in _COMMISSION_TYPES}


@pages.get("/console/limits/commission")
async def show_commission_form(visit: PageRequest) -> Reply[bytes]:
    await visit.require_access(_CHANGE_ACTION.endpoint)
    rules = (await visit.get(COMMISSION_RULES_PATH))["data"]
    return _render_form(visit, rules, stale_check.fingerprint(rules))


@pages.post("/console/limits/commission")
async def change_commission(visit: PageRequest) -> Reply[bytes]:
    await visit.require_access(_CHANGE_ACTION.endpoint)
    rules = _parse_rules(visit)
    try:
        stale_check.require_unchanged(
            visit.form.get("seen"), (await visit.get(COMMISSION_RULES_PATH))["data"]
        )
        await visit.send("PUT", COMMISSION_RULES_PATH, {"data": rules})
    except ApiError as error:
        if error.code is Code.UNAUTHORIZED:
            raise
        return _render_form(visit, rules, visit.form.get("seen"), error)
    return visit.redirect("/console/limits", _CHANGE_ACTION.success_message)


def _parse_rules(visit: PageRequest) -> list[dict[str, Any]]:
    """Return the submitted rules. A row without a rate means no rule."""
    return [
        {"type": kind, "tier": tier, "rate": rate, "minimum_amount": minimum or "0"}
        for kind in _COMMISSION_TYPES
        for tier in TIERS
        if (rate := visit.form.get(f"rate_{kind}_{tier}")) is not None
        for minimum in [visit.form.get(f"minimum_amount_{kind}_{tier}")]
    ]


def _render_form(
    visit: PageRequest, rules: list[dict[str, Any]], mark: str | None, error: ApiError | None = None
) -> Reply[bytes]:
    fields = {} if error is None else (error.details or {}).get("fields", {})
    wrong = {}
    for path, sentence in fields.items():
        place, _, name = path.removeprefix("data[").partition("].")
        if place.isdigit() and int(place) < len(rules):
            rule = rules[int(place)]
            wrong[f"{name}_{rule['type']}_{rule['tier']}"] = sentence
    return visit.render(
        "limits/commission.html",
        action=_CHANGE_ACTION,
        address=visit.context.path,
        error=error,
        is_marked=bool(wrong),
        wrong=wrong,
        commissions=group_by_tier(rules),
        seen=mark,
    )
