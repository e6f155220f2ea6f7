"""The endpoints of account rules."""

from tapgate.compliance.account_rules import operations, queries
from tapgate.compliance.account_rules.model import (
    AccountRuleRecord,
    AccountRuleUpdate,
    parse_level,
    to_record,
)
from tapgate.edge.endpoint import Access, Endpoints
from tapgate.edge.request_context import RequestContext
from tapgate.errors import Code

endpoints = Endpoints("Account rules")


@endpoints.get(
    "/api/v1/account-rules/{kyc_level}",
    access=Access(scope="subscribers:read", roles="ACSF", service=True),
    errors=(Code.RULE_NOT_FOUND,),
)
async def get_account_rule(call: RequestContext, kyc_level: str) -> AccountRuleRecord:
    """Get the limits of a KYC level.

    What a subscriber of this level may hold (`max_balance`), send at once, in a day and in a month
    of the platform's time zone, and pay without a PIN: each payment up to `no_pin_limit`, and five
    times that on one card in one day. `requirements` says what it takes to reach the level.
    """
    rule = await queries.get(call.services.database, parse_level(kyc_level))
    return to_record(rule, call.services.settings.currency)


@endpoints.put(
    "/api/v1/account-rules/{kyc_level}",
    access=Access(roles="A"),
    errors=(Code.RULE_NOT_FOUND, Code.CURRENCY_NOT_SUPPORTED),
)
async def update_account_rule(
    call: RequestContext, kyc_level: str, body: AccountRuleUpdate
) -> AccountRuleRecord:
    """Change the limits of a KYC level.

    What is left out stays as it is. A day's limit must be within the month's. The next payment is
    decided by the new limits, in every process; `no_pin_limit` may be zero: every payment then
    needs the PIN.
    """
    rule = await operations.update(call, parse_level(kyc_level), body)
    return to_record(rule, call.services.settings.currency)
