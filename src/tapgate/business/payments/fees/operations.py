"""Replacement of fee rules and commission rules."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from tapgate.auth.actors import Actor
from tapgate.business.payments.fees.queries import RowT, RuleTable
from tapgate.events.audit.rule_changes import record_rule_change
from tapgate.runtime.store.signals import Signals
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.schemas.fees import CommissionRules, FeeRules

RulesT = TypeVar("RulesT", FeeRules, CommissionRules)


async def replace(
    tx: Transaction,
    actor: Actor,
    table: RuleTable[RowT],
    new_rows: list[RowT],
    to_record: Callable[[list[RowT]], RulesT],
    *,
    signals: Signals,
    keep: Callable[[RowT], bool] = lambda row: False,
) -> RulesT:
    """Replace all rules in a table except the ones to keep, and return the resulting rules."""
    await table.lock(tx)
    rows = await table.list_rows(tx)
    await table.replace_rows(tx, [row for row in rows if keep(row)] + new_rows)
    before, after = to_record(rows), to_record(await table.list_rows(tx))
    if after != before:
        changes = {"data": (msgspec.to_builtins(before.data), msgspec.to_builtins(after.data))}
        await record_rule_change(tx, actor, signals, table.name, table.name, "replaced", changes)
    return after
