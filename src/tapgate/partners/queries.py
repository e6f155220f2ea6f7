"""SQL queries for partners.

Status, name, balance and overdraft are stored on the account row. The lock on the account row also
guards the partner row.
"""

from datetime import datetime
from typing import NamedTuple

from tapgate import ids
from tapgate.errors import ApiError, Code, require_found
from tapgate.ledger.accounts import lock_account
from tapgate.partners.model import ACCOUNT_STATUSES, Partner
from tapgate.schemas.partners import PartnerFilters, PartnerStatus
from tapgate.store.conditions import PageConditions
from tapgate.store.database import Database
from tapgate.store.rows import insert_row
from tapgate.store.transaction import Transaction

_SELECT = """
    SELECT p.id, p.account_id, p.created_at, a.holder_name AS name, a.currency, a.balance,
           a.overdraft, CASE a.status WHEN 'active' THEN 'active' ELSE 'suspended' END AS status
    FROM partners p JOIN accounts a ON a.id = p.account_id"""


async def get(reader: Database | Transaction, partner_id: int) -> Partner:
    row = await reader.fetchrow(f"{_SELECT} WHERE p.id = $1", partner_id)
    return Partner(**require_found(row, Code.PARTNER_NOT_FOUND))


async def require_exists(reader: Database | Transaction, partner_id: int) -> None:
    if not await reader.fetchval("SELECT EXISTS (SELECT FROM partners WHERE id = $1)", partner_id):
        raise ApiError(Code.PARTNER_NOT_FOUND)


async def lock(tx: Transaction, partner_id: int) -> Partner:
    """Lock a partner's account, which serializes status changes, and return the partner."""
    account_id = await tx.fetchval("SELECT account_id FROM partners WHERE id = $1", partner_id)
    await lock_account(tx, require_found(account_id, Code.PARTNER_NOT_FOUND))
    # Read after locking: another database transaction may have changed the row before the lock was
    # granted.
    return await get(tx, partner_id)


async def list_page(database: Database, filters: PartnerFilters) -> list[Partner]:
    conditions = PageConditions(filters, "p.id")
    conditions.where("a.status = {}", filters.status and ACCOUNT_STATUSES[filters.status])
    conditions.search(filters.search, "p.search_text", id_column="p.id", prefix=ids.PARTNER)
    return [Partner(**row) for row in await conditions.fetch(database, _SELECT)]


async def add(tx: Transaction, partner: Partner, webhook_secret: bytes) -> None:
    """Insert a partner with its sealed webhook secret. Its account must already be open."""
    columns = ("id", "account_id", "created_at")
    await insert_row(tx, "partners", partner, columns, webhook_secret=webhook_secret)


async def save_state(tx: Transaction, partner: Partner, reason: str | None) -> None:
    """Store the status. The caller must hold the partner's lock."""
    await tx.execute(
        "UPDATE accounts SET status = $2, status_reason = $3, updated_at = $4 WHERE id = $1",
        partner.account_id,
        ACCOUNT_STATUSES[partner.status],
        reason if partner.status == PartnerStatus.SUSPENDED else None,
        tx.now(),
    )


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


async def find_subscriber_by_phone(database: Database, phone_number: str) -> int | None:
    subscriber_id: int | None = await database.fetchval(
        "SELECT id FROM subscribers WHERE phone_number = $1", phone_number
    )
    return subscriber_id
