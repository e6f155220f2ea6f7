"""A batch's transfers to other books, stored in its database transaction. Few batches have any.

A transfer is delivered if and only if its sender was debited.
"""

from collections.abc import Sequence
from typing import Any

from tapgate.ledger.decisions.state import Decision, State


async def store_book_transfers(tx: Any, decisions: Sequence[Decision], state: State) -> None:
    for decision in decisions:
        transfer, transaction = decision.book_transfer, decision.transaction
        if transfer is None or transaction is None:
            continue
        assert transaction.from_account is not None
        await tx.execute(
            """INSERT INTO book_transfers (id, book, recipient_id, recipient_name, sender_name,
                                           status, next_attempt_at, created_at)
               VALUES ($1, $2, $3, $4, $5, 'pending', $6, $6)""",
            transaction.id,
            transfer.book,
            transfer.recipient_id,
            transfer.recipient_name,
            state.accounts[transaction.from_account].public_name,
            state.now,
        )
