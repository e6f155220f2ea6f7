"""The endpoints of fee rules."""

from tapgate.edge.endpoint import Access, Endpoints
from tapgate.edge.request_context import RequestContext
from tapgate.errors import Code
from tapgate.wallets.fee_rules import operations, queries
from tapgate.wallets.fee_rules.model import FeeRules, require_single_type, to_record

endpoints = Endpoints("Fee rules")


@endpoints.get("/api/v1/fee-rules", access=Access(roles="AF"))
async def get_fee_rules(call: RequestContext) -> FeeRules:
    """Get what transactions cost."""
    steps = await queries.list_steps(call.services.database)
    return to_record(steps, call.services.settings.currency)


@endpoints.put("/api/v1/fee-rules", access=Access(roles="A"))
async def replace_fee_rules(call: RequestContext, body: FeeRules) -> FeeRules:
    """Replace what transactions cost.

    All rules at once, in the form in which they are answered. The steps of a type follow each
    other by `up_to`, and the last has none; the rate of the first step that reaches the amount is
    the rate of the whole amount. Refunds, commission payouts and what the platform pays in have no
    fee; that of a payment is paid by the receiver.
    """
    return await operations.replace(call, body)


@endpoints.put("/api/v1/fee-rules/{type}", access=Access(roles="A"), errors=(Code.RULE_NOT_FOUND,))
async def replace_fee_rules_of_type(call: RequestContext, type: str, body: FeeRules) -> FeeRules:
    """Replace what transactions of one type cost.

    The steps of this type, in the form in which they are answered; the rules of every other type
    stay as they are. Without a step there is no fee. Answers all rules.
    """
    require_single_type(body, type)
    return await operations.replace(call, body, type)
