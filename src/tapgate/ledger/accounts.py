"""Opening accounts, and locking one to change what is known about its owner."""

from typing import Any

from tapgate.ledger import chart


async def open_account(
    tx: Any,
    *,
    id: int,
    kind: str,
    owner_id: int,
    holder_name: str,
    currency: str,
    kyc_level: int | None = None,
    overdraft: int = 0,
) -> None:
    assert kind not in chart.PLATFORM_KINDS
    await tx.execute(
        """INSERT INTO accounts
               (id, kind, owner_id, holder_name, currency, kyc_level, overdraft, checked)
           VALUES ($1, $2, $3, $4, $5, $6, $7, true)""",
        id,
        kind,
        owner_id,
        holder_name,
        currency,
        kyc_level,
        overdraft,
    )


async def lock_account(tx: Any, account_id: int) -> Any:
    """Whoever holds this lock decides alone about the account's owner: money, PIN, state."""
    return await tx.fetchrow("SELECT * FROM accounts WHERE id = $1 FOR NO KEY UPDATE", account_id)
