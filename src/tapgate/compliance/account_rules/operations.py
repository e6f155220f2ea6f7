"""Operations on account rules: update."""

from tapgate.api.request_context import RequestContext
from tapgate.audit.changes import diff_records
from tapgate.audit.trail import record
from tapgate.compliance.account_rules import model, queries
from tapgate.ledger import rules
from tapgate.ledger.rules import AccountRule
from tapgate.schemas.compliance import AccountRuleUpdate


async def update(request: RequestContext, kyc_level: int, update: AccountRuleUpdate) -> AccountRule:
    """Update a rule and wait up to one second for every process to apply the change."""
    services = request.services
    currency = services.settings.currency
    async with services.transaction() as tx:
        before = await queries.lock(tx, kyc_level)
        after = model.apply_update(before, update, currency)
        if after == before:
            return before
        await queries.save(tx, after)
        await record(
            tx,
            request.actor,
            event="account_rule.updated",
            resource_type="account_rule",
            resource_id=str(kyc_level),
            changes=diff_records(
                model.to_record(before, currency), model.to_record(after, currency)
            ),
        )
        ticket = await services.signals.publish(tx, rules.RULES_CHANGED, str(kyc_level))
    await services.signals.wait_for_acks(ticket)
    return after
