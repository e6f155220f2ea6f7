"""Endpoints for fee rules."""

from tapgate.api.endpoint import Access, Endpoints
from tapgate.api.request_context import RequestContext
from tapgate.errors import Code
from tapgate.schemas.fees import FeeRules
from tapgate.wallets.fee_rules import operations, queries
from tapgate.wallets.fee_rules.model import require_single_type, to_record

endpoints = Endpoints("Fee rules")


@endpoints.get("/api/v1/fee-rules", access=Access(roles="AF"))
async def get_fee_rules(request: RequestContext) -> FeeRules:
    """Get the fee rules."""
    steps = await queries.list_steps(request.services.database)
    return to_record(steps, request.services.settings.currency)


@endpoints.put("/api/v1/fee-rules", access=Access(roles="A"))
async def replace_fee_rules(request: RequestContext, body: FeeRules) -> FeeRules:
    """Replace all fee rules.

    The body has the same format as the response. Each rule is a fee tier. The tiers of a type are
    ordered by `up_to`, which is null in the last tier, and have the same `payer`. The rate of the
    first tier that covers the amount applies to the entire amount. Refunds, commission payouts and
    deposits by the platform must not have a fee. For payments to a processor, `payer` must be
    `receiver`.
    """
    return await operations.replace(request, body)


@endpoints.put("/api/v1/fee-rules/{type}", access=Access(roles="A"), errors=(Code.RULE_NOT_FOUND,))
async def replace_fee_rules_of_type(request: RequestContext, type: str, body: FeeRules) -> FeeRules:
    """Replace the fee rules of one transaction type.

    The body contains the fee tiers of this type, in the same format as the response. The rules of
    all other types are unchanged. Without tiers, the type has no fee. Returns all rules.
    """
    require_single_type(body, type)
    return await operations.replace(request, body, type)
