"""The form that changes what agents earn."""

from typing import Any, Final

from tapgate.console import seen
from tapgate.console.acts import Act
from tapgate.console.site import Pages
from tapgate.console.visit import Visit
from tapgate.edge.endpoint import Reply
from tapgate.errors import ApiError, Code
from tapgate.ledger import chart

pages = Pages()

COMMISSIONS: Final = "/api/v1/commission-rules"
TIERS: Final = (1, 2, 3)
_TYPES: Final = (chart.AGENT_CASHIN, chart.AGENT_CASHOUT)
_CHANGE: Final = Act(
    name="commission.change",
    endpoint=f"PUT {COMMISSIONS}",
    title="Commission",
    explains="Applies to the next cash-in and cash-out of every agent.",
    button="Change the commission",
    done="The commission is changed.",
)

#: type -> tier -> rule, or None where there is none
ByTier = dict[str, dict[int, dict[str, Any] | None]]


def by_tier(rules: list[dict[str, Any]]) -> ByTier:
    found = {(rule["type"], rule["tier"]): rule for rule in rules}
    return {kind: {tier: found.get((kind, tier)) for tier in TIERS} for kind in _TYPES}


@pages.get("/console/limits/commission")
async def ask_commission(visit: Visit) -> Reply[bytes]:
    await visit.require(_CHANGE.endpoint)
    rules = (await visit.get(COMMISSIONS))["data"]
    return _form(visit, rules, seen.mark(rules))


@pages.post("/console/limits/commission")
async def change_commission(visit: Visit) -> Reply[bytes]:
    await visit.require(_CHANGE.endpoint)
    rules = _typed(visit)
    try:
        seen.require_still(visit.form.get("seen"), (await visit.get(COMMISSIONS))["data"])
        await visit.send("PUT", COMMISSIONS, {"data": rules})
    except ApiError as error:
        if error.code is Code.UNAUTHORIZED:
            raise
        return _form(visit, rules, visit.form.get("seen"), error)
    return visit.go("/console/limits", _CHANGE.done)


def _typed(visit: Visit) -> list[dict[str, Any]]:
    """A row without a rate has no rule."""
    return [
        {"type": kind, "tier": tier, "rate": rate, "minimum_amount": minimum or "0"}
        for kind in _TYPES
        for tier in TIERS
        if (rate := visit.form.get(f"rate_{kind}_{tier}")) is not None
        for minimum in [visit.form.get(f"minimum_amount_{kind}_{tier}")]
    ]


def _form(
    visit: Visit, rules: list[dict[str, Any]], mark: str | None, error: ApiError | None = None
) -> Reply[bytes]:
    fields = {} if error is None else (error.details or {}).get("fields", {})
    wrong = {}
    for path, sentence in fields.items():
        place, _, name = path.removeprefix("data[").partition("].")
        if place.isdigit() and int(place) < len(rules):
            rule = rules[int(place)]
            wrong[f"{name}_{rule['type']}_{rule['tier']}"] = sentence
    return visit.page(
        "limits/commission.html",
        act=_CHANGE,
        address=visit.call.path,
        error=error,
        is_marked=bool(wrong),
        wrong=wrong,
        commissions=by_tier(rules),
        seen=mark,
    )
