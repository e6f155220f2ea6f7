"""Recalls: a sender asks the receiver of a transfer for the money back.

What the receiver still has available is held until the receiver answers, staff decide or the
recall expires. Sender and receiver accounts are locked for every step, so a recall and a reversal
of one transfer exclude each other.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import msgspec

from tapgate.ledger import chart
from tapgate.ledger.archive.archived import ARCHIVED
from tapgate.ledger.commands import (
    Outcome,
    RecallDecision,
    RecallRequest,
    TransactionResult,
    build_outcome,
)
from tapgate.ledger.decisions.reversals import UndoneAmount, find_rejection, is_between_books
from tapgate.ledger.decisions.state import (
    Decision,
    Hold,
    RecallChange,
    State,
    StoredRecall,
    StoredTransaction,
)
from tapgate.ledger.idempotency.replays import find_replayed_request
from tapgate_client import ids
from tapgate_client.errors import Code
from tapgate_client.schemas.recalls import RecallStatus, RecallVerdict

MAX_OPEN_RECALLS: Final = 3
_OPEN: Final = RecallStatus.OPEN.value


def decide_recall_request(
    state: State, command: RecallRequest, new_id: Callable[[], int]
) -> Decision:
    """Open a recall and hold what the receiver has available, up to the transfer amount."""
    replay = _find_replay(state, command)
    if replay is not None:
        return Decision(outcome=replay)
    row = state.transactions.get(command.transaction_id)
    if row is None or row.from_account is None:
        is_archived = command.transaction_id < state.archive_end
        return _reject(Code.NOT_RECALLABLE, dict(ARCHIVED) if is_archived else None)
    age = state.now - (row.completed_at or row.created_at)
    accounts = [state.accounts[row.from_account], state.accounts[row.to_account]]
    is_closed = any(account.status == chart.CLOSED for account in accounts)
    if (
        row.type != chart.TRANSFER_P2P
        or row.status != chart.COMPLETED
        or row.id in state.recalls
        or is_closed
        or is_between_books(row.type, accounts)
        or age > timedelta(seconds=command.max_age_seconds)
    ):
        return _reject(Code.NOT_RECALLABLE)
    open_recalls = [
        recall.id
        for recall in state.recalls.values()
        if recall.sender_account == row.from_account and recall.status == _OPEN
    ]
    if len(open_recalls) >= MAX_OPEN_RECALLS:
        return _reject(Code.NOT_RECALLABLE, {"open": len(open_recalls)})
    receiver = state.accounts[row.to_account]
    held = min(row.amount, max(receiver.available, 0))
    recall = StoredRecall(
        id=new_id(),
        transaction_id=row.id,
        sender_account=row.from_account,
        receiver_account=row.to_account,
        held_amount=held,
        status=_OPEN,
        scope=command.idempotency_key.scope,
        request_id=command.idempotency_key.request_id,
        fingerprint=command.idempotency_key.fingerprint,
    )
    return Decision(
        outcome=_build_outcome(row, held),
        hold=Hold(receiver.id, held) if held else None,
        recall=RecallChange(
            recall,
            is_new=True,
            amount=row.amount,
            reason=command.reason,
            expires_at=state.now + timedelta(seconds=command.hold_seconds),
        ),
    )


def _find_replay(state: State, command: RecallRequest) -> Outcome | None:
    """Return a replay's outcome, a conflict, or None for a new request."""
    key = command.idempotency_key
    for recall in state.recalls.values():
        if (recall.scope, recall.request_id) == (key.scope, key.request_id):
            if recall.fingerprint != key.fingerprint:
                return Outcome(None, Code.DUPLICATE_REQUEST)
            result = TransactionResult(
                transaction_id=recall.transaction_id,
                status=_OPEN,
                amount=recall.held_amount,
                fee=0,
            )
            return build_outcome(result, replayed=True)
    # A transaction with the same key is another request.
    used = find_replayed_request(state.prior_requests, key)
    return None if used is None else Outcome(None, Code.DUPLICATE_REQUEST)


def decide_recall(state: State, command: RecallDecision, new_id: Callable[[], int]) -> Decision:
    """End an open recall, and return the held amount if the decision says so.

    The sender gets the held amount without a share of the fee, which stays with the platform.
    """
    recall = state.recalls.get(command.transaction_id)
    row = state.transactions.get(command.transaction_id)
    if recall is None or row is None or recall.id != command.recall_id:
        return _reject(Code.RECALL_NOT_FOUND)
    if recall.status != _OPEN:
        return _reject(Code.RECALL_NOT_OPEN)
    change = RecallChange(
        msgspec.structs.replace(recall, status=command.status),
        is_new=False,
        reason=command.reason,
        decided_by=command.decided_by,
    )
    if command.status == RecallStatus.DECIDED:
        verdict = RecallVerdict.RETURN if command.is_return else RecallVerdict.RELEASE
        change = change._replace(decision=verdict.value)
    hold = Hold(recall.receiver_account, -recall.held_amount) if recall.held_amount else None
    if not command.is_return:
        outcome = _build_outcome(row, recall.held_amount)
        return Decision(outcome=outcome, hold=hold, recall=change)
    return _return_held(state, command, row, recall, change, hold, new_id)


def _return_held(
    state: State,
    command: RecallDecision,
    row: StoredTransaction,
    recall: StoredRecall,
    change: RecallChange,
    hold: Hold | None,
    new_id: Callable[[], int],
) -> Decision:
    if hold is None:
        return _reject(Code.INSUFFICIENT_FUNDS)
    rejection = find_rejection(state, row, recall.held_amount, recall_id=recall.id)
    if rejection is not None:
        return _reject(rejection.code, rejection.details)
    reversal_id = new_id()
    undone = UndoneAmount(state, row, recall.held_amount, keeps_fee=True)
    decision = undone.accept(
        reversal_id,
        channel=command.channel,
        context={"recall_id": ids.encode(ids.RECALL, recall.id)},
    )
    return msgspec.structs.replace(
        decision, hold=hold, recall=change._replace(reversal_id=reversal_id)
    )


def _build_outcome(row: StoredTransaction, held: int) -> Outcome:
    result = TransactionResult(transaction_id=row.id, status=row.status, amount=held, fee=0)
    return build_outcome(result, replayed=False)


def _reject(code: Code, details: dict[str, Any] | None = None) -> Decision:
    return Decision(outcome=Outcome(None, code, details))
