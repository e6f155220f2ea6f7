"""Commands and queries for tests of reversals and recalls."""

from typing import Any

from builders.ledger import LedgerDriver
from tapgate.ledger.commands import Outcome, Reversal


def build_reversal(original_id: int, amount: int | None = None, **fields: Any) -> Reversal:
    return Reversal(original_id=original_id, amount=amount, channel="admin", **fields)


async def reverse(
    ledger: LedgerDriver, original_id: int, amount: int | None = None, **fields: Any
) -> Outcome:
    return await ledger.submit(build_reversal(original_id, amount, **fields))


async def submit(ledger: LedgerDriver, command: Any) -> int:
    """Submit a command that must succeed, and return its transaction ID."""
    outcome = await ledger.submit(command)
    assert outcome.code is None, outcome
    assert outcome.result is not None
    return outcome.result.transaction_id


async def get_row(ledger: LedgerDriver, transaction_id: int) -> dict[str, Any]:
    row = await ledger.database.fetchrow(
        "SELECT type, status, amount, refunded_amount, original_id FROM transactions WHERE id = $1",
        transaction_id,
    )
    return dict(row)


async def get_usage(ledger: LedgerDriver, owner_id: int) -> tuple[int, int]:
    row = await ledger.database.fetchrow(
        "SELECT day_used, month_used FROM accounts WHERE owner_id = $1", owner_id
    )
    return tuple(row)
