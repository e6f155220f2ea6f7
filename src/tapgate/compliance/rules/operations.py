"""Operations on compliance rules: create, update, delete."""

import asyncpg
import msgspec

from tapgate.audit.trail import record
from tapgate.compliance.rules import model, queries
from tapgate.compliance.rules.model import NewRule, RuleUpdate, WatchRule
from tapgate.edge.request_context import RequestContext
from tapgate.ledger import rules
from tapgate.store.signals import Ticket


async def create(call: RequestContext, new: NewRule) -> WatchRule:
    """Store a rule. When this returns, every process applies it."""
    services = call.services
    rule = model.created(services.new_id(), new, services.settings.currency)
    async with services.database.transaction() as tx:
        model.require_room(await queries.count_locked(tx))
        await queries.insert(tx, rule)
        ticket = await _record(tx, call, "created", None, rule)
    await services.signals.wait_for_acks(ticket)
    return rule


async def delete(call: RequestContext, rule_id: int) -> None:
    """Remove a rule. Its alerts stay, and so do transactions that it holds for review."""
    services = call.services
    async with services.database.transaction() as tx:
        rule = await queries.lock(tx, rule_id)
        await queries.delete(tx, rule_id)
        ticket = await _record(tx, call, "deleted", rule, None)
    await services.signals.wait_for_acks(ticket)


async def update(call: RequestContext, rule_id: int, update: RuleUpdate) -> WatchRule:
    """Once it is answered, every process decides by the new rule."""
    services = call.services
    async with services.database.transaction() as tx:
        before = await queries.lock(tx, rule_id)
        after = model.updated(before, update, services.settings.currency)
        if after == before:
            return before
        await queries.save(tx, after)
        ticket = await _record(tx, call, "updated", before, after)
    await services.signals.wait_for_acks(ticket)
    return after


async def _record(
    tx: asyncpg.Connection,
    call: RequestContext,
    action: str,
    before: WatchRule | None,
    after: WatchRule | None,
) -> Ticket:
    """Write the audit entry and tell every process to reload the rules."""
    services = call.services
    currency = services.settings.currency
    was, now = _fields(before, currency), _fields(after, currency)
    rule = after or before
    assert rule is not None
    await record(
        tx,
        services,
        call.origin,
        event=f"compliance_rule.{action}",
        resource_type="compliance_rule",
        resource_id=rule.public_id,
        changes={
            field: (was.get(field), now.get(field))
            for field in was | now
            if was.get(field) != now.get(field)
        },
    )
    return await services.signals.publish(tx, rules.RULES_CHANGED, rule.public_id)


def _fields(rule: WatchRule | None, currency: str) -> dict[str, object]:
    return {} if rule is None else msgspec.structs.asdict(model.shown(rule, currency))
