"""Operations on compliance rules: create, update and delete.

A change waits after the commit, up to one second, for every process to apply it.
"""

from tapgate.auth.actors import Actor
from tapgate.business.compliance.rules import model, queries
from tapgate.events.audit.rule_changes import record_rule_change
from tapgate.events.audit.trail import diff_records
from tapgate.ledger.rules.compliance import ComplianceRule
from tapgate.runtime.store.signals import Signals
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.schemas.compliance import NewRule, RuleUpdate


async def create(
    tx: Transaction, actor: Actor, new_rule: NewRule, *, currency: str, signals: Signals
) -> ComplianceRule:
    rule = model.build_rule(tx.new_id(), new_rule, currency)
    model.require_below_limit(await queries.lock_and_count(tx))
    await queries.insert(tx, rule)
    await _record_change(tx, actor, signals, currency, "created", None, rule)
    return rule


async def delete(
    tx: Transaction, actor: Actor, rule_id: int, *, currency: str, signals: Signals
) -> None:
    """Delete a rule. Its alerts are kept, and transactions that it holds stay under review."""
    rule = await queries.get(tx, rule_id, for_update=True)
    await queries.delete(tx, rule_id)
    await _record_change(tx, actor, signals, currency, "deleted", rule, None)


async def update(
    tx: Transaction,
    actor: Actor,
    rule_id: int,
    update: RuleUpdate,
    *,
    currency: str,
    signals: Signals,
) -> ComplianceRule:
    before = await queries.get(tx, rule_id, for_update=True)
    after = model.apply_update(before, update, currency)
    if after == before:
        return before
    await queries.save(tx, after)
    await _record_change(tx, actor, signals, currency, "updated", before, after)
    return after


async def _record_change(
    tx: Transaction,
    actor: Actor,
    signals: Signals,
    currency: str,
    action: str,
    before: ComplianceRule | None,
    after: ComplianceRule | None,
) -> None:
    rule = after or before
    assert rule is not None
    old, new = (item and model.to_record(item, currency) for item in (before, after))
    changes = diff_records(old, new)
    await record_rule_change(tx, actor, signals, "compliance_rule", rule.public_id, action, changes)
