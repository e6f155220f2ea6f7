"""Endpoints for fee rules and commission rules."""

import msgspec

from tapgate.business.payments.fees import operations
from tapgate.business.payments.fees.model import (
    parse_commission_rules,
    parse_fee_rules,
    require_single_type,
    to_commission_rules,
    to_fee_rules,
)
from tapgate.business.payments.fees.queries import COMMISSION_RULES, FEE_RULES
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER, SHARED
from tapgate.http.api.request_context import GuardedRequest
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import Code
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.fees import CommissionRules, FeeRules

fee_endpoints = Endpoints("Fee rules", "/api/v1/fee-rules", objects=ObjectAccess.ANY, owners=NEVER)
commission_endpoints = Endpoints(
    "Commission rules", "/api/v1/commission-rules", objects=ObjectAccess.ANY, owners=NEVER
)


@fee_endpoints.get("", access=Access(roles="AF"), owners=SHARED)
async def get_fee_rules(request: GuardedRequest) -> FeeRules:
    """Get the fee rules."""
    tiers = await FEE_RULES.list_rows(request.services.database)
    return to_fee_rules(tiers, request.services.settings.currency)


async def _describe_fee_rules(
    request: GuardedRequest, body: FeeRules, type: str | None = None
) -> Proposal:
    if type is not None:
        require_single_type(body, type)
    parse_fee_rules(body, request.services.settings.currency)
    current = await get_fee_rules(request)
    rules = [rule for rule in current.data if type in (None, rule.type)]
    return Proposal(
        operations=(Operation.FEE_RULES,),
        summary="Change the fee rules" if type is None else f"Change the fee rules of {type}",
        before={"data": msgspec.to_builtins(rules)},
    )


@fee_endpoints.put(
    "",
    access=Access(roles="A"),
    step_up=True,
    guard=Guard(_describe_fee_rules, Operation.FEE_RULES),
)
async def replace_fee_rules(request: GuardedRequest, tx: Transaction, body: FeeRules) -> FeeRules:
    """Replace all fee rules.

    The body has the same format as the response. Each rule is a fee tier. A type's tiers are
    ordered by `up_to`, which is null in the last tier, and have the same `payer`. The first tier
    that covers the amount sets the fee for the entire amount: `fixed` plus `rate` percent of the
    amount, at least `minimum` and at most `maximum`. A receiver never pays more than the amount.
    Refunds, commission payouts and
    deposits by the platform must not have a fee. For payments to a processor, `payer` must be
    `receiver`.
    """
    return await _replace_fee_rules(request, tx, body)


@fee_endpoints.put(
    "/{type}",
    access=Access(roles="A"),
    step_up=True,
    guard=Guard(_describe_fee_rules, Operation.FEE_RULES),
    errors=(Code.RULE_NOT_FOUND,),
)
async def replace_fee_rules_of_type(
    request: GuardedRequest, tx: Transaction, type: str, body: FeeRules
) -> FeeRules:
    """Replace the fee rules of one transaction type.

    The body contains the fee tiers for this type, in the same format as the response. The rules of
    all other types are unchanged. Without tiers, the type has no fee. Returns all rules.
    """
    require_single_type(body, type)
    return await _replace_fee_rules(request, tx, body, type)


async def _replace_fee_rules(
    request: GuardedRequest, tx: Transaction, body: FeeRules, kind: str | None = None
) -> FeeRules:
    services, currency = request.services, request.services.settings.currency
    tiers = parse_fee_rules(body, currency)
    return await operations.replace(
        tx,
        request.actor,
        FEE_RULES,
        tiers,
        lambda rows: to_fee_rules(rows, currency),
        signals=services.signals,
        keep=lambda tier: kind is not None and tier.type != kind,
    )


@commission_endpoints.get("", access=Access(roles="AF"), owners=SHARED)
async def get_commission_rules(request: GuardedRequest) -> CommissionRules:
    """Get the commission rules."""
    rates = await COMMISSION_RULES.list_rows(request.services.database)
    return to_commission_rules(rates, request.services.settings.currency)


async def _describe_commission_rules(request: GuardedRequest, body: CommissionRules) -> Proposal:
    parse_commission_rules(body, request.services.settings.currency)
    return Proposal(
        operations=(Operation.COMMISSION_RULES,),
        summary="Change the commission rules",
        before=msgspec.to_builtins(await get_commission_rules(request)),
    )


@commission_endpoints.put(
    "",
    access=Access(roles="A"),
    step_up=True,
    guard=Guard(_describe_commission_rules, Operation.COMMISSION_RULES),
)
async def replace_commission_rules(
    request: GuardedRequest, tx: Transaction, body: CommissionRules
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
    services, currency = request.services, request.services.settings.currency
    rates = parse_commission_rules(body, currency)
    return await operations.replace(
        tx,
        request.actor,
        COMMISSION_RULES,
        rates,
        lambda rows: to_commission_rules(rows, currency),
        signals=services.signals,
    )
