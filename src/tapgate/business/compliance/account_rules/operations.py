"""Operations on account rules: update."""

from tapgate.auth.actors import Actor
from tapgate.business.compliance.account_rules import model, queries
from tapgate.events.audit.rule_changes import record_rule_change
from tapgate.events.audit.trail import diff_records
from tapgate.ledger.rules.kyc_limits import AccountRule
from tapgate.runtime.store.signals import Signals
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.schemas.compliance import AccountRuleUpdate


async def update(
    tx: Transaction,
    actor: Actor,
    kyc_level: int,
    update: AccountRuleUpdate,
    *,
    currency: str,
    signals: Signals,
) -> AccountRule:
    """Update a rule and wait up to one second for every process to apply the change."""
    before = await queries.get(tx, kyc_level, for_update=True)
    after = model.apply_update(before, update, currency)
    if after == before:
        return before
    await queries.save(tx, after)
    changes = diff_records(model.to_record(before, currency), model.to_record(after, currency))
    resource_id = str(kyc_level)
    await record_rule_change(tx, actor, signals, "account_rule", resource_id, "updated", changes)
    return after
