"""Commission rule endpoints."""

from tapgate.agents.commission_rules import operations, queries
from tapgate.agents.commission_rules.model import to_record
from tapgate.api.endpoint import Access, Endpoints
from tapgate.api.request_context import RequestContext
from tapgate.schemas.fees import CommissionRules

endpoints = Endpoints("Commission rules")


@endpoints.get("/api/v1/commission-rules", access=Access(roles="AF"))
async def get_commission_rules(request: RequestContext) -> CommissionRules:
    """Get the commission rules."""
    rules = await queries.list_rules(request.services.database)
    return to_record(rules, request.services.settings.currency)


@endpoints.put("/api/v1/commission-rules", access=Access(roles="A"))
async def replace_commission_rules(
    request: RequestContext, body: CommissionRules
) -> CommissionRules:
    """Replace the commission rules.

    The request contains the complete set of rules, in the format in which they are returned.
    Without a rule for the transaction type and the agent's tier, no commission is earned. An amount
    below `minimum_amount` earns no commission either.

    A cash-in earns no commission on the part of its amount that the same subscriber cashed out at
    the same agent within the last 24 hours. If the subscriber cashes this part out again within 24
    hours, the cash-out earns no commission on it either.

    Commission is rounded half up, and the rounding error is carried over to the agent's next
    commission, so splitting an amount does not increase the commission.
    """
    return await operations.replace(request, body)
