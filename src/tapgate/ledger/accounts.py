"""Account creation and row locks."""

from typing import Any

from tapgate.ledger import chart


async def open_account(
    tx: Any,
    *,
    id: int,
    kind: str,
    owner_id: int,
    holder_name: str,
    public_name: str | None = None,
    currency: str,
    kyc_level: int | None = None,
    overdraft: int = 0,
) -> None:
    """Insert an account for a subscriber, agent, processor or partner.

    `public_name` is the part of the holder's name that other parties may see, by default all of it.
    """
    assert kind not in chart.PLATFORM_ACCOUNT_KINDS
    await tx.execute(
        """INSERT INTO accounts
               (id, kind, owner_id, holder_name, public_name, currency, kyc_level, overdraft,
                checked)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, true)""",
        id,
        kind,
        owner_id,
        holder_name,
        holder_name if public_name is None else public_name,
        currency,
        kyc_level,
        overdraft,
    )


async def lock_account(tx: Any, account_id: int) -> None:
    """Lock an account.

    The lock serializes all changes to the account's balance and to the owner's PIN and status.
    """
    await tx.execute("SELECT FROM accounts WHERE id = $1 FOR NO KEY UPDATE", account_id)
