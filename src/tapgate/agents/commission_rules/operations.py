"""Operations on commission rules: replace the complete set."""

import msgspec

from tapgate.agents.commission_rules import model, queries
from tapgate.api.request_context import RequestContext
from tapgate.audit.trail import record
from tapgate.ledger import rules
from tapgate.schemas.fees import CommissionRules


async def replace(request: RequestContext, new_rules: CommissionRules) -> CommissionRules:
    """Replace all rules. Waits up to one second for every process to apply the change."""
    services = request.services
    currency = services.settings.currency
    stored = model.from_request(new_rules, currency)
    async with services.transaction() as tx:
        await queries.lock(tx)
        before = model.to_record(await queries.list_rules(tx), currency)
        await queries.replace_all(tx, stored)
        after = model.to_record(await queries.list_rules(tx), currency)
        if after == before:
            return before
        await record(
            tx,
            request.actor,
            event="commission_rules.replaced",
            resource_type="commission_rules",
            resource_id="commission_rules",
            changes={"data": (msgspec.to_builtins(before.data), msgspec.to_builtins(after.data))},
        )
        ticket = await services.signals.publish(tx, rules.RULES_CHANGED, "commission_rules")
    await services.signals.wait_for_acks(ticket)
    return after
