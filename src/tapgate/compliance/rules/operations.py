"""What can happen to a compliance rule: it is changed."""

from tapgate.audit.changes import changes_between
from tapgate.audit.trail import record
from tapgate.compliance.rules import model, queries
from tapgate.compliance.rules.model import Update, WatchRule
from tapgate.edge.call import Call
from tapgate.ledger import rules


async def update(call: Call, rule_id: int, update: Update) -> WatchRule:
    """Once it is answered, every process decides by the new rule."""
    services = call.services
    currency = services.settings.currency
    async with services.database.transaction() as tx:
        before = await queries.lock(tx, rule_id)
        after = model.updated(before, update, currency)
        if after == before:
            return before
        await queries.save(tx, after)
        await record(
            tx,
            services,
            call.origin,
            event="compliance_rule.updated",
            resource_type="compliance_rule",
            resource_id=after.public_id,
            changes=changes_between(model.shown(before, currency), model.shown(after, currency)),
        )
        ticket = await services.signals.publish(tx, rules.CHANGED, after.public_id)
    await services.signals.settled(ticket)
    return after
