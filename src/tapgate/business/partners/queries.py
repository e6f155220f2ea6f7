"""SQL queries for partners."""

from datetime import datetime
from typing import NamedTuple

from tapgate.business.owners.owner_table import OwnerTable
from tapgate.business.partners.model import Partner
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.rows import insert_row
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids

TABLE = OwnerTable("partner", Partner, ids.PARTNER, "a.balance, a.overdraft")
get, lock, list_page = TABLE.get, TABLE.lock, TABLE.list_page


async def add(
    tx: Transaction, partner: Partner, webhook_secret: bytes, received_by: int | None
) -> None:
    """Insert a partner with its sealed webhook secret. Its account must already be open."""
    secret = {"webhook_secret": webhook_secret, "webhook_secret_by": received_by}
    await insert_row(tx, "partners", partner, ("id", "account_id", "created_at"), **secret)


class WebhookSource(NamedTuple):
    """Partner that sends a webhook, with its sealed secrets."""

    webhook_secret: bytes
    previous_secret: bytes | None
    previous_until: datetime | None
    is_suspended: bool

    def get_valid_secrets(self, now: datetime) -> list[bytes]:
        previous, until = self.previous_secret, self.previous_until
        if previous is None or until is None or until <= now:
            return [self.webhook_secret]
        return [self.webhook_secret, previous]


async def get_webhook_source(database: Database, partner_id: int) -> WebhookSource | None:
    """Return the partner that sends a webhook, or None if there is no such partner.

    The row is read for each webhook, so that a suspension or rotation takes effect immediately in
    every process.
    """
    row = await database.fetchrow(
        """SELECT p.webhook_secret, p.previous_webhook_secret, p.previous_webhook_secret_until,
                  a.status <> 'active'
           FROM partners p JOIN accounts a ON a.id = p.account_id WHERE p.id = $1""",
        partner_id,
    )
    return None if row is None else WebhookSource(*row)
