"""Receipts of a batch, enqueued by one statement in the batch's database transaction.

Only the transaction, the kind of receipt and the recipient are stored here. The text is composed
later, when the message is built. A batch without recipients executes no statement.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from tapgate.ledger import chart
from tapgate.ledger.state import Account, Decision, NewTransaction, State, StoredTransaction
from tapgate.schemas.transactions import Channel

MONEY_RECEIVED: Final = "money_received"
PAYMENT_MADE: Final = "payment_made"

_PAYEE_RECEIPT_TYPES: Final = chart.RECEIVE_ONLY_TYPES | {
    chart.TRANSFER_P2P,
    chart.TRANSFER,
    chart.REFUND,
}
_PAYER_RECEIPT_TYPES: Final = chart.LIMITED_TYPES
#: On this channel, the payer already gets the result as a chat reply.
_CHAT_CHANNEL: Final = Channel.MESSAGING


class PendingReceipt(NamedTuple):
    transaction_id: int
    kind: str
    subscriber_id: int


async def enqueue_receipts(tx: Any, state: State, decisions: Sequence[Decision]) -> None:
    enabled_kinds = state.rules.receipt_kinds
    if not enabled_kinds:
        return
    receipts = [
        receipt
        for decision in decisions
        for receipt in _iter_receipts(state, decision, enabled_kinds)
    ]
    if receipts:
        await tx.execute(
            """INSERT INTO notices (transaction_id, kind, subscriber_id)
               SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[])""",
            *map(list, zip(*receipts, strict=True)),
        )


def _iter_receipts(
    state: State, decision: Decision, enabled_kinds: Collection[str]
) -> Iterator[PendingReceipt]:
    row = _get_completed(state, decision)
    if row is None or row.from_account is None or row.to_account is None:
        return
    payer, payee = state.accounts[row.from_account], state.accounts[row.to_account]
    if (
        MONEY_RECEIVED in enabled_kinds
        and row.type in _PAYEE_RECEIPT_TYPES
        and (row.type != chart.TRANSFER or payer.kind == chart.WALLET)
    ):
        yield from _iter_subscriber_receipts(payee, row.id, MONEY_RECEIVED)
    if (
        PAYMENT_MADE in enabled_kinds
        and row.type in _PAYER_RECEIPT_TYPES
        and not _was_confirmed_in_chat(row)
    ):
        yield from _iter_subscriber_receipts(payer, row.id, PAYMENT_MADE)


def _get_completed(state: State, decision: Decision) -> NewTransaction | StoredTransaction | None:
    """Return the transaction that the decision completed, directly or by release, or None."""
    created, change = decision.transaction, decision.change
    if created is not None:
        return created if created.status == chart.COMPLETED else None
    if change is not None and change.is_completion:
        return state.transactions[change.transaction_id]
    return None


def _was_confirmed_in_chat(row: NewTransaction | StoredTransaction) -> bool:
    """Return whether the chat reply already reported the completed transaction to the payer.

    For a transaction released from review, the chat reply reported only the hold.
    """
    return isinstance(row, NewTransaction) and row.channel == _CHAT_CHANNEL


def _iter_subscriber_receipts(
    account: Account, transaction_id: int, kind: str
) -> Iterator[PendingReceipt]:
    if account.kind == chart.WALLET and account.owner_id is not None:
        yield PendingReceipt(transaction_id, kind, account.owner_id)
