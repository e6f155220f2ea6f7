"""Payout rows of a batch, written in its database transaction."""

from collections.abc import Sequence
from typing import Any

from tapgate.ledger.decisions.state import Decision, State


def has_payouts(state: State, decisions: Sequence[Decision]) -> bool:
    return any(payout.is_changed for payout in state.payouts.values()) or any(
        decision.new_payout is not None for decision in decisions
    )


async def write_payouts(tx: Any, state: State, decisions: Sequence[Decision]) -> None:
    """Insert requested payouts and store changed ones."""
    new = [
        (
            decision.new_payout.id,
            decision.new_payout.owner_type,
            decision.new_payout.owner_id,
            decision.transaction.from_account,
            decision.new_payout.bank_account_id,
            decision.transaction.amount,
            decision.transaction.fee_amount,
            state.rules.currency,
            decision.new_payout.reference,
            decision.transaction.id,
            state.now,
        )
        for decision in decisions
        if decision.new_payout is not None and decision.transaction is not None
    ]
    if new:
        await tx.executemany(
            """INSERT INTO payouts (id, owner_type, owner_id, account_id, bank_account_id, amount,
                                    fee_amount, currency, reference, transaction_id, status,
                                    created_at, updated_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'requested', $11, $11)""",
            new,
        )
    changed = [payout for payout in state.payouts.values() if payout.is_changed]
    if changed:
        await tx.execute(
            """UPDATE payouts SET status = new.status, bank_reference = new.bank_reference,
                      return_reason = new.return_reason, updated_at = $5
               FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[])
                 AS new (id, status, bank_reference, return_reason)
               WHERE payouts.id = new.id""",
            [payout.id for payout in changed],
            [payout.status for payout in changed],
            [payout.bank_reference for payout in changed],
            [payout.return_reason for payout in changed],
            state.now,
        )
