"""Changes to ledger rules: fees, commissions, limits and compliance rules."""

from tapgate.auth.actors import Actor
from tapgate.events.audit.trail import AuditTrail, Changes
from tapgate.ledger.rules.loaded_rules import RULES_CHANGED
from tapgate.runtime.store.signals import Signals
from tapgate.runtime.store.transaction import Transaction


async def record_rule_change(
    tx: Transaction,
    actor: Actor,
    signals: Signals,
    resource_type: str,
    resource_id: str,
    action: str,
    changes: Changes,
) -> None:
    """Write the audit entry for a rule change, and make every process reload the rules.

    After the commit, waits up to one second for every process to apply the change.
    """
    await AuditTrail(resource_type).record(tx, actor, resource_id, action, changes=changes)
    await signals.publish_and_wait(tx, RULES_CHANGED, resource_id)
