"""Account rule endpoints."""

import msgspec

from tapgate.business.compliance.account_rules import operations, queries
from tapgate.business.compliance.account_rules.model import parse_level, to_record
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER, SHARED
from tapgate.http.api.request_context import GuardedRequest
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import Code
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.compliance import AccountRuleRecord, AccountRuleUpdate

endpoints = Endpoints(
    "Account rules",
    "/api/v1/account-rules/{kyc_level}",
    errors=(Code.RULE_NOT_FOUND,),
    objects=ObjectAccess.ANY,
    owners=NEVER,
)


@endpoints.get(
    "",
    access=Access(scope="subscribers:read", roles="ACSF", service=True),
    owners=SHARED,
)
async def get_account_rule(request: GuardedRequest, kyc_level: str) -> AccountRuleRecord:
    """Get a KYC level's limits.

    The limits cover the wallet balance (`max_balance`) and the amount sent per transaction, per day
    and per month in the platform's time zone. `requirements` lists the conditions for reaching the
    level.

    A card payment up to `no_pin_limit` needs no PIN. Payments without a PIN are limited to five
    times `no_pin_limit` per card and day. Above `proof_required_above`, cards that do not sign
    their taps are rejected with 403 `CARD_PROOF_REQUIRED`.
    """
    rule = await queries.get(request.services.database, parse_level(kyc_level))
    return to_record(rule, request.services.settings.currency)


async def _describe_update(
    request: GuardedRequest, kyc_level: str, body: AccountRuleUpdate
) -> Proposal:
    return Proposal(
        operations=(Operation.ACCOUNT_RULES,),
        summary=f"Change the limits of KYC level {kyc_level}",
        resource_id=kyc_level,
        before=msgspec.to_builtins(await get_account_rule(request, kyc_level)),
    )


@endpoints.put(
    "",
    access=Access(roles="A"),
    step_up=True,
    guard=Guard(_describe_update, Operation.ACCOUNT_RULES),
    errors=(Code.CURRENCY_NOT_SUPPORTED,),
)
async def update_account_rule(
    request: GuardedRequest, tx: Transaction, kyc_level: str, body: AccountRuleUpdate
) -> AccountRuleRecord:
    """Update a KYC level's limits.

    Omitted fields keep their value. The daily limit must not exceed the monthly limit. The request
    waits up to one second for every process to apply the new limits. If `no_pin_limit` is zero,
    every card payment requires the PIN. An empty string clears `proof_required_above`.
    """
    services, level = request.services, parse_level(kyc_level)
    currency = services.settings.currency
    rule = await operations.update(
        tx, request.actor, level, body, currency=currency, signals=services.signals
    )
    return to_record(rule, currency)
