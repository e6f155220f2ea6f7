"""A batch's notifications, enqueued by the statement that writes the batch.

A notification is a receipt, a review outcome, a low float, or the notice that an admin moved
someone's money. Only the transaction, the kind
and the recipient are stored. The text is composed later, when the message is built.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from tapgate.core.message_templates import Notice
from tapgate.ledger import chart
from tapgate.ledger.decisions.state import (
    Account,
    Decision,
    NewTransaction,
    State,
    TransactionChange,
)
from tapgate.ledger.effects.low_float import LowFloat
from tapgate_client import ids
from tapgate_client.schemas.transactions import Channel

MONEY_RECEIVED: Final = "money_received"
PAYMENT_MADE: Final = "payment_made"
PAYMENT_RELEASED: Final = "payment_released"
PAYMENT_REJECTED: Final = "payment_rejected"
FLOAT_LOW: Final = "float_low"
MONEY_CORRECTED: Final = Notice.MONEY_CORRECTED.value

_PAYEE_RECEIPT_TYPES: Final = chart.RECEIVE_ONLY_TYPES | {
    chart.TRANSFER_P2P,
    chart.TRANSFER,
    chart.REFUND,
}
#: Transactions that an admin can request without a PIN of the payer.
_CORRECTION_TYPES: Final = frozenset(
    {
        chart.TRANSFER,
        chart.AGENT_FUND,
        chart.COMMISSION_PAYOUT,
        chart.PROCESSOR_TRANSFER,
        chart.PARTNER_FUND,
        chart.REFUND,
        chart.REVERSAL,
    }
)

#: Context key of a reversal: the book that refused the transfer.
REFUSED_BY_CONTEXT_KEY: Final = "refused_by"
_PAYER_RECEIPT_TYPES: Final = chart.LIMITED_TYPES
#: On this channel, the payer already gets the result as a chat reply.
_CHAT_CHANNEL: Final = Channel.MESSAGING
#: Subscriber and agent accounts. Merchants and partners are companies without a phone.
_ACCOUNT_KINDS_WITH_PHONE: Final = frozenset({chart.WALLET, chart.FLOAT, chart.COMMISSION})


class PendingNotification(NamedTuple):
    transaction_id: int
    kind: str
    holder_id: int  # a subscriber or an agent


def build_notifications(
    state: State, decisions: Sequence[Decision], low_floats: Sequence[LowFloat]
) -> list[PendingNotification]:
    enabled_kinds = state.rules.notification_kinds
    if not enabled_kinds:
        return []
    notifications = [
        notification
        for decision in decisions
        for notification in _iter_notifications(state, decision, enabled_kinds)
    ]
    if FLOAT_LOW in enabled_kinds:
        notifications += [
            PendingNotification(low_float.transaction_id, FLOAT_LOW, low_float.agent_id)
            for low_float in low_floats
        ]
    return notifications


def _iter_notifications(
    state: State, decision: Decision, enabled_kinds: Collection[str]
) -> Iterator[PendingNotification]:
    created, change = decision.transaction, decision.change
    if created is not None:
        yield from _iter_receipts(state, created, enabled_kinds)
    elif change is not None:
        yield from _iter_review_notifications(state, change, enabled_kinds)


def _iter_receipts(
    state: State, row: NewTransaction, enabled_kinds: Collection[str]
) -> Iterator[PendingNotification]:
    if row.status != chart.COMPLETED or row.from_account is None or row.to_account is None:
        return
    payer, payee = state.accounts[row.from_account], state.accounts[row.to_account]
    if PAYMENT_REJECTED in enabled_kinds and _is_refused_transfer(row):
        assert row.original_id is not None
        assert payee.owner_id is not None
        yield PendingNotification(row.original_id, PAYMENT_REJECTED, payee.owner_id)
        return
    if MONEY_CORRECTED in enabled_kinds and _is_correction(row):
        for holder_id in _list_holders([payer, payee]):
            yield PendingNotification(row.id, MONEY_CORRECTED, holder_id)
        return
    kinds = list_receipt_kinds(row.type, payer.kind, payee.kind)
    if MONEY_RECEIVED in enabled_kinds and MONEY_RECEIVED in kinds and payee.owner_id is not None:
        yield PendingNotification(row.id, MONEY_RECEIVED, payee.owner_id)
    if (
        PAYMENT_MADE in enabled_kinds
        and PAYMENT_MADE in kinds
        and row.channel != _CHAT_CHANNEL
        and payer.owner_id is not None
    ):
        yield PendingNotification(row.id, PAYMENT_MADE, payer.owner_id)


def list_receipt_kinds(transaction_type: str, payer_kind: str, payee_kind: str) -> list[str]:
    """Return the receipts that the parties of a completed transaction get, if all are enabled."""
    kinds = []
    if payer_kind == chart.WALLET and transaction_type in _PAYER_RECEIPT_TYPES:
        kinds.append(PAYMENT_MADE)
    if (
        payee_kind == chart.WALLET
        and transaction_type in _PAYEE_RECEIPT_TYPES
        and (transaction_type != chart.TRANSFER or payer_kind == chart.WALLET)
    ):
        kinds.append(MONEY_RECEIVED)
    return kinds


def _iter_review_notifications(
    state: State, change: TransactionChange, enabled_kinds: Collection[str]
) -> Iterator[PendingNotification]:
    """Yield one notification per account holder. They replace the receipts.

    Also notify a payer who used the chat, because the chat reply reported only the hold.
    """
    kind = PAYMENT_RELEASED if change.is_completion else PAYMENT_REJECTED
    if kind not in enabled_kinds:
        return
    row = state.transactions[change.transaction_id]
    accounts = [state.accounts[id_] for id_ in (row.from_account, row.to_account) if id_]
    for holder_id in _list_holders(accounts):
        yield PendingNotification(row.id, kind, holder_id)


def _is_correction(row: NewTransaction) -> bool:
    """Return whether an admin moved the money. The parties get a notice instead of receipts."""
    context = row.context or {}
    is_by_admin = str(context.get("requested_by", "")).startswith(ids.ADMIN)
    return row.type in _CORRECTION_TYPES and (is_by_admin or "approval_id" in context)


def _is_refused_transfer(row: NewTransaction) -> bool:
    """Return whether the money of a transfer that another book refused goes back."""
    return row.type == chart.REVERSAL and REFUSED_BY_CONTEXT_KEY in (row.context or {})


def _list_holders(accounts: Sequence[Account]) -> list[int]:
    """Return the holders that have a phone, once each: both may be accounts of one agent."""
    holder_ids = {
        account.owner_id: None for account in accounts if account.kind in _ACCOUNT_KINDS_WITH_PHONE
    }
    return [holder_id for holder_id in holder_ids if holder_id is not None]
