"""The SQL of top-ups: who sends a webhook, and whom it is about."""

from typing import NamedTuple

from tapgate.store.database import Database


class Sender(NamedTuple):
    """`webhook_secret` is sealed."""

    webhook_secret: bytes
    suspended: bool


async def sender(database: Database, partner_id: int) -> Sender | None:
    """Read anew for each webhook: a suspension is known at once, in every process."""
    row = await database.fetchrow(
        """SELECT p.webhook_secret, a.status <> 'active'
           FROM partners p JOIN accounts a ON a.id = p.account_id WHERE p.id = $1""",
        partner_id,
    )
    return None if row is None else Sender(*row)


async def subscriber_by_phone(database: Database, phone_number: str) -> int | None:
    found: int | None = await database.fetchval(
        "SELECT id FROM subscribers WHERE phone_number = $1", phone_number
    )
    return found
