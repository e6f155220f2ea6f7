"""Operations on fee rules: replace all rules, or the rules of one type."""

import msgspec

from tapgate.api.request_context import RequestContext
from tapgate.audit.trail import record
from tapgate.ledger import rules
from tapgate.schemas.fees import FeeRules
from tapgate.wallets.fee_rules import model, queries


async def replace(
    request: RequestContext, fee_rules: FeeRules, kind: str | None = None
) -> FeeRules:
    """Replace the rules of the type `kind`, or all rules if `kind` is None, and return all rules.

    Waits up to one second for every process to apply the new rules.
    """
    services = request.services
    currency = services.settings.currency
    new_steps = model.parse_fee_rules(fee_rules, currency)
    async with services.transaction() as tx:
        await queries.lock(tx)
        steps = await queries.list_steps(tx)
        before = model.to_record(steps, currency)
        kept_steps = [step for step in steps if kind is not None and step.type != kind]
        await queries.replace_all(tx, kept_steps + new_steps)
        after = model.to_record(await queries.list_steps(tx), currency)
        if after == before:
            return before
        await record(
            tx,
            request.actor,
            event="fee_rules.replaced",
            resource_type="fee_rules",
            resource_id="fee_rules",
            changes={"data": (msgspec.to_builtins(before.data), msgspec.to_builtins(after.data))},
        )
        ticket = await services.signals.publish(tx, rules.RULES_CHANGED, "fee_rules")
    await services.signals.wait_for_acks(ticket)
    return after
