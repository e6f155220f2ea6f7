"""Onboarding for a new installation: steps that are done once the records exist.

An installation that starts without demo data has a row in `installation` until an admin dismisses
the steps. Installations from before this feature have none.
"""

from typing import Final

from tapgate.http.api.access import Access
from tapgate.http.api.guards import Unguarded
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.installation import ONBOARDING_ROW
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.reporting import Onboarding, OnboardingStep, OnboardingStepName

endpoints = Endpoints(
    "Overview",
    "/api/v1/admin/onboarding",
    access=Access(roles="A"),
    objects=ObjectAccess.NO_OBJECT,
    owners=NEVER,
)

#: SQL conditions by step, in the order of the steps.
_CONDITIONS: Final = {
    OnboardingStepName.CARDS: "EXISTS (SELECT FROM cards)",
    OnboardingStepName.AGENT: "EXISTS (SELECT FROM agents)",
    OnboardingStepName.FLOAT: """EXISTS (SELECT FROM transactions
                                         WHERE type = 'agent_fund' AND status = 'completed')""",
    OnboardingStepName.CUSTOMER: "EXISTS (SELECT FROM subscribers)",
    OnboardingStepName.MERCHANT: """EXISTS (SELECT FROM admins
                                            WHERE owner_type = 'processor')""",
    OnboardingStepName.PAYMENT: """EXISTS (SELECT FROM transactions
        WHERE type IN ('pos_payment', 'online_payment')
          AND status IN ('completed', 'partially_refunded', 'refunded'))""",
    OnboardingStepName.WEBHOOK: """EXISTS (SELECT FROM webhook_endpoints
                                           WHERE deleted_at IS NULL)""",
    OnboardingStepName.SECOND_ADMIN: """(SELECT count(*) FROM admins
                                         WHERE status = 'active' AND owner_id IS NULL) > 1""",
    OnboardingStepName.APPROVAL_RULES: "EXISTS (SELECT FROM approval_rules)",
}
_DISMISSED: Final = Onboarding(open=False, steps=[], agent_id=None, processor_id=None)
_SELECT: Final = ", ".join(f"{condition} AS {name}" for name, condition in _CONDITIONS.items())


@endpoints.get("")
async def get_onboarding(request: RequestContext) -> Onboarding:
    """Get the steps of setting up a new installation.

    A step is done when its records exist, or when an admin has skipped it. `open` is false, and
    `steps` is empty, once an admin has dismissed the steps, and in an installation that started
    with data.
    """
    return await _load(request.services.database)


@endpoints.post("/dismiss", unguarded=Unguarded.NO_EFFECT)
async def dismiss_onboarding(request: RequestContext) -> Onboarding:
    """Dismiss the steps of setting up the installation, for all admins."""
    database = request.services.database
    await database.execute("DELETE FROM installation WHERE name = $1", ONBOARDING_ROW)
    return _DISMISSED


@endpoints.post("/{step}/skip", errors=(Code.NOT_FOUND,), unguarded=Unguarded.NO_EFFECT)
async def skip_onboarding_step(request: RequestContext, step: str) -> Onboarding:
    """Skip a step of setting up the installation, for all admins."""
    if step not in _CONDITIONS:
        raise ApiError(Code.NOT_FOUND, f"Steps are {', '.join(_CONDITIONS)}.")
    database = request.services.database
    await database.execute(
        """UPDATE installation SET value = value || ' ' || $2
           WHERE name = $1 AND $2 <> ALL (string_to_array(value, ' '))""",
        ONBOARDING_ROW,
        step,
    )
    return await _load(database)


async def _load(database: Database) -> Onboarding:
    # The row has the skipped steps' names.
    value = await database.fetchval(
        "SELECT value FROM installation WHERE name = $1", ONBOARDING_ROW
    )
    if value is None:
        return _DISMISSED
    row = await database.fetchrow(
        f"""SELECT {_SELECT}, (SELECT max(id) FROM agents) AS agent_id,
                   (SELECT max(id) FROM processors) AS processor_id"""
    )
    assert row is not None  # it has no FROM
    skipped, agent_id, processor_id = value.split(), row["agent_id"], row["processor_id"]
    return Onboarding(
        open=True,
        steps=[
            OnboardingStep(name=name, done=row[name] or name in skipped) for name in _CONDITIONS
        ],
        agent_id=None if agent_id is None else ids.encode(ids.AGENT, agent_id),
        processor_id=None if processor_id is None else ids.encode(ids.PROCESSOR, processor_id),
    )
