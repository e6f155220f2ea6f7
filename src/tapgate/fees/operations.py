"""Operations on fee rules and commission rules: replace them.

After the commit, an operation waits up to one second for every process to apply the new rules.
"""

from typing import TypeVar

import msgspec

from tapgate.audit.rule_changes import record_rule_change
from tapgate.auth.actors import Actor
from tapgate.fees import model
from tapgate.fees.queries import COMMISSION_RULES, FEE_RULES
from tapgate.schemas.fees import CommissionRules, FeeRules
from tapgate.store.signals import Signals
from tapgate.store.transaction import Transaction

RulesT = TypeVar("RulesT", FeeRules, CommissionRules)


async def replace_fee_rules(
    tx: Transaction,
    actor: Actor,
    new_rules: FeeRules,
    kind: str | None = None,
    *,
    currency: str,
    signals: Signals,
) -> FeeRules:
    """Replace the rules of the type `kind`, or all if it is None, and return all rules."""
    new_tiers = model.parse_fee_rules(new_rules, currency)
    await FEE_RULES.lock(tx)
    tiers = await FEE_RULES.list_rows(tx)
    kept_tiers = [tier for tier in tiers if kind is not None and tier.type != kind]
    await FEE_RULES.replace_rows(tx, kept_tiers + new_tiers)
    before = model.to_fee_rules(tiers, currency)
    after = model.to_fee_rules(await FEE_RULES.list_rows(tx), currency)
    await _publish_change(tx, actor, signals, FEE_RULES.name, before, after)
    return after


async def replace_commission_rules(
    tx: Transaction,
    actor: Actor,
    new_rules: CommissionRules,
    *,
    currency: str,
    signals: Signals,
) -> CommissionRules:
    rates = model.parse_commission_rules(new_rules, currency)
    await COMMISSION_RULES.lock(tx)
    before = model.to_commission_rules(await COMMISSION_RULES.list_rows(tx), currency)
    await COMMISSION_RULES.replace_rows(tx, rates)
    after = model.to_commission_rules(await COMMISSION_RULES.list_rows(tx), currency)
    await _publish_change(tx, actor, signals, COMMISSION_RULES.name, before, after)
    return after


async def _publish_change(
    tx: Transaction, actor: Actor, signals: Signals, name: str, before: RulesT, after: RulesT
) -> None:
    if after != before:
        await record_rule_change(
            tx,
            actor,
            signals,
            resource_type=name,
            resource_id=name,
            action="replaced",
            changes={"data": (msgspec.to_builtins(before.data), msgspec.to_builtins(after.data))},
        )
