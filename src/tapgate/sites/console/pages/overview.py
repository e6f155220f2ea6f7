"""Home page with the platform overview."""

import asyncio
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from tapgate.http.endpoint import Reply
from tapgate.sites.console import charts
from tapgate.sites.console.actions import Action
from tapgate.sites.console.labels import get_flow_label
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client.schemas.reporting import OnboardingStepName

pages = Pages()

_TRANSACTIONS_PATH: Final = "/console/transactions"
PERIODS: Final = {"day": "24 hours", "week": "7 days", "month": "30 days"}

_ONBOARDING_PATH: Final = "/api/v1/admin/onboarding"
#: Title and explanation of each step.
_STEP_TEXTS: Final = {
    OnboardingStepName.CARDS: (
        "Upload your cards",
        "A CSV file with the serial numbers that came with the cards.",
    ),
    OnboardingStepName.AGENT: (
        "Register an agent",
        "Agents take cash from customers and pay it out.",
    ),
    OnboardingStepName.FLOAT: (
        "Fund the agent's float",
        "The money that the agent can pass on to customers.",
    ),
    OnboardingStepName.CUSTOMER: (
        "Register a customer",
        "With a PIN. Then link a card and cash in at the agent, on the customer's page.",
    ),
    OnboardingStepName.PAYMENT: (
        "Take the first payment",
        "At a merchant's terminal, with the customer's card and PIN.",
    ),
    OnboardingStepName.WEBHOOK: (
        "Add a webhook",
        "Your own software receives events about payments, cards and customers.",
    ),
    OnboardingStepName.SECOND_ADMIN: (
        "Invite a second administrator",
        "Approvals need two people, and each person needs an account.",
    ),
    OnboardingStepName.APPROVAL_RULES: (
        "Require a second person",
        "The recommended approval rules hold funding, transfers and changes of rules and rights "
        "until another administrator approves them. They need two system administrators.",
    ),
}

ACTIONS = (
    Action(
        name="onboarding.dismiss",
        endpoint=f"POST {_ONBOARDING_PATH}/dismiss",
        title="Dismiss the steps?",
        description="They disappear from the overview of every administrator.",
        button="Dismiss",
        success_message="Steps dismissed.",
    ),
    Action(
        name="onboarding.skip",
        endpoint=f"POST {_ONBOARDING_PATH}/{{step}}/skip",
        title="Skip this step?",
        description="It counts as done for every administrator.",
        button="Skip",
        success_message="Step skipped.",
    ),
    Action(
        name="ledger.verify",
        endpoint="POST /api/v1/ledger/verify",
        title="Verify the ledger now?",
        description="Recalculates every balance from ledger entries. Payments continue; large "
        "ledgers take a few minutes.",
        button="Verify ledger",
        success_message="Ledger verified.",
        result_template="proof.html",
    ),
)


class FlowTile(NamedTuple):
    """Volume of one flow of money. `change` compares it with the previous period, in percent."""

    label: str
    path: str
    amount: str
    completed: int
    change: Decimal | None


@pages.get("/console")
async def show_overview(request: PageRequest) -> Reply[bytes]:
    overview, onboarding = await asyncio.gather(
        request.get("/api/v1/overview", request.query.pick("period")), _get_onboarding(request)
    )
    return request.render(
        "overview.html",
        overview=overview,
        periods=PERIODS,
        flows=_build_flow_tiles(overview),
        transactions_path=f"{_TRANSACTIONS_PATH}?period={overview['period']}",
        count_change=compute_change(
            overview["totals"]["count"], overview["previous"]["totals"]["count"]
        ),
        volume=_build_chart(request, overview, "payments"),
        onboarding=onboarding,
        texts=_STEP_TEXTS,
        counts=_build_chart(request, overview, "completed", "failed"),
    )


def _build_flow_tiles(overview: Mapping[str, Any]) -> list[FlowTile]:
    previous = {flow["flow"]: flow for flow in overview["previous"]["flows"]}
    return [
        FlowTile(
            label=get_flow_label(flow["flow"]),
            path=f"{_TRANSACTIONS_PATH}?flow={flow['flow']}&period={overview['period']}",
            amount=flow["amount"],
            completed=flow["completed"],
            change=compute_change(flow["amount"], previous[flow["flow"]]["amount"]),
        )
        for flow in overview["flows"]
    ]


def compute_change(value: str | int, previous: str | int) -> Decimal | None:
    """Return the change in percent, or None if there is nothing to compare with."""
    before = Decimal(previous)
    return 100 * (Decimal(value) - before) / before if before > 0 else None


async def _get_onboarding(request: PageRequest) -> Any:
    """Return the open steps of setting up the installation, or None."""
    if request.is_partial or not request.can_access(f"GET {_ONBOARDING_PATH}"):
        return None
    onboarding = await request.get(_ONBOARDING_PATH)
    is_done = all(step["done"] for step in onboarding["steps"])
    return onboarding if onboarding["open"] and not is_done else None


def _build_chart(request: PageRequest, overview: Mapping[str, Any], *kinds: str) -> charts.Chart:
    zone = request.context.services.settings.timezone
    return charts.build_bar_chart(
        overview["buckets"],
        kinds,
        period=overview["period"],
        zone=zone,
        translate=request.translate,
    )
