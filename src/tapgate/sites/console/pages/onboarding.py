"""The steps of setting up a new installation, on the home page."""

from typing import Any, Final

from tapgate.sites.console.actions import Action
from tapgate.sites.console.page_request import PageRequest
from tapgate_client.schemas.reporting import OnboardingStepName

_ONBOARDING_PATH: Final = "/api/v1/admin/onboarding"
#: Title and explanation of each step.
STEP_TEXTS: Final = {
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
    OnboardingStepName.MERCHANT: (
        "Create a merchant",
        "Then invite its manager on the merchant's page, which leads through the next steps.",
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
)


async def load_onboarding(request: PageRequest) -> Any:
    """Return the open steps of setting up the installation, or None."""
    if request.is_partial or not request.can_access(f"GET {_ONBOARDING_PATH}"):
        return None
    onboarding = await request.get(_ONBOARDING_PATH)
    is_done = all(step["done"] for step in onboarding["steps"])
    return onboarding if onboarding["open"] and not is_done else None
