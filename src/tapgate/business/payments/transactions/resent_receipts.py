"""Sending a transaction's receipts to its parties again."""

from typing import Final

from tapgate.auth.actors import Actor
from tapgate.business.customers.subscribers.restriction import require_account_access
from tapgate.business.payments.transactions import queries
from tapgate.core.vault import Vault
from tapgate.events.audit.trail import AuditTrail
from tapgate.events.notifications.receipts import resend_receipts
from tapgate.ledger import chart
from tapgate.ledger.effects.pending_notifications import (
    MONEY_RECEIVED,
    PAYMENT_MADE,
    list_receipt_kinds,
)
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import invalid_field
from tapgate_client.schemas.transactions import TransactionParty

_KINDS: Final = {
    TransactionParty.SENDER: PAYMENT_MADE,
    TransactionParty.RECEIVER: MONEY_RECEIVED,
}
_UNSENT_STATUSES: Final = frozenset({chart.FAILED, chart.UNDER_REVIEW})

_trail = AuditTrail("transaction")


async def resend(
    tx: Transaction,
    actor: Actor,
    vault: Vault,
    transaction_id: int,
    party: TransactionParty | None,
) -> list[TransactionParty]:
    """Send the receipts of one or both parties again, and return the recipients."""
    row = await queries.get(tx, transaction_id)
    await require_account_access(tx, actor.principal, tx.now(), row.account_ids)
    kinds: list[str] = []
    if row.status not in _UNSENT_STATUSES and row.payer is not None and row.payee is not None:
        kinds = list_receipt_kinds(row.type, row.payer.kind, row.payee.kind)
    sides = {TransactionParty.SENDER: row.payer, TransactionParty.RECEIVER: row.payee}
    holders = {
        each: side.owner_id
        for each, side in sides.items()
        if _KINDS[each] in kinds and party in (None, each) and side and side.owner_id
    }
    if not holders:
        raise invalid_field("party", "gets no receipt for this transaction")
    await resend_receipts(
        tx, vault, row.id, {_KINDS[each]: holder_id for each, holder_id in holders.items()}
    )
    await _trail.record(
        tx,
        actor,
        ids.encode(ids.TRANSACTION, row.id),
        "receipt_resent",
        changes={"recipients": (None, list(holders))},
    )
    return list(holders)
