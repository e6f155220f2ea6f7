"""A batch's recalls, stored in its database transaction. Few batches have any."""

from collections.abc import Sequence
from typing import Any

import msgspec

from tapgate.ledger.decisions.state import Decision, State


async def store_recalls(tx: Any, decisions: Sequence[Decision], state: State) -> None:
    """Insert new recalls, and update ended ones."""
    changes = [decision.recall for decision in decisions if decision.recall is not None]
    for change in changes:
        recall = change.recall
        if change.is_new:
            await tx.execute(
                """INSERT INTO recalls (
                       id, transaction_id, sender_account, receiver_account, held_amount, status,
                       scope, request_id, fingerprint, amount, currency, reason, expires_at,
                       created_at, updated_at)
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14)""",
                *msgspec.structs.astuple(recall),
                change.amount,
                state.rules.currency,
                change.reason,
                change.expires_at,
                state.now,
            )
        else:
            await tx.execute(
                """UPDATE recalls SET status = $2, decision = $3, decided_by = $4,
                          decision_reason = $5, reversal_id = $6, updated_at = $7
                   WHERE id = $1""",
                recall.id,
                recall.status,
                change.decision,
                change.decided_by,
                change.reason,
                change.reversal_id,
                state.now,
            )
