"""Operations on compliance rules: create, update and delete."""

import asyncpg
import msgspec

from tapgate.api.request_context import RequestContext
from tapgate.audit.trail import record
from tapgate.compliance.rules import model, queries
from tapgate.compliance.rules.model import StoredRule
from tapgate.ledger import rules
from tapgate.schemas.compliance import NewRule, RuleUpdate
from tapgate.store.signals import Ticket


async def create(request: RequestContext, new_rule: NewRule) -> StoredRule:
    """Create a rule and wait up to one second for every process to apply it."""
    services = request.services
    rule = model.build_rule(services.new_id(), new_rule, services.settings.currency)
    async with services.transaction() as tx:
        model.require_below_limit(await queries.lock_and_count(tx))
        await queries.insert(tx, rule)
        ticket = await _record_and_signal(tx, request, "created", None, rule)
    await services.signals.wait_for_acks(ticket)
    return rule


async def delete(request: RequestContext, rule_id: int) -> None:
    """Delete a rule and wait up to one second for every process to stop applying it.

    The rule's alerts are kept, and transactions that the rule holds stay under review.
    """
    services = request.services
    async with services.transaction() as tx:
        rule = await queries.lock(tx, rule_id)
        await queries.delete(tx, rule_id)
        ticket = await _record_and_signal(tx, request, "deleted", rule, None)
    await services.signals.wait_for_acks(ticket)


async def update(request: RequestContext, rule_id: int, update: RuleUpdate) -> StoredRule:
    """Update a rule and wait up to one second for every process to apply the change."""
    services = request.services
    async with services.transaction() as tx:
        before = await queries.lock(tx, rule_id)
        after = model.apply_update(before, update, services.settings.currency)
        if after == before:
            return before
        await queries.save(tx, after)
        ticket = await _record_and_signal(tx, request, "updated", before, after)
    await services.signals.wait_for_acks(ticket)
    return after


async def _record_and_signal(
    tx: asyncpg.Connection,
    request: RequestContext,
    action: str,
    before: StoredRule | None,
    after: StoredRule | None,
) -> Ticket:
    """Write the audit entry and signal every process to reload the rules."""
    services = request.services
    currency = services.settings.currency
    old_fields, new_fields = _to_fields(before, currency), _to_fields(after, currency)
    rule = after or before
    assert rule is not None
    await record(
        tx,
        request.actor,
        event=f"compliance_rule.{action}",
        resource_type="compliance_rule",
        resource_id=rule.public_id,
        changes={
            field: (old_fields.get(field), new_fields.get(field))
            for field in old_fields | new_fields
            if old_fields.get(field) != new_fields.get(field)
        },
    )
    return await services.signals.publish(tx, rules.RULES_CHANGED, rule.public_id)


def _to_fields(rule: StoredRule | None, currency: str) -> dict[str, object]:
    return {} if rule is None else msgspec.structs.asdict(model.to_record(rule, currency))
