"""SQL queries for the owner of a caller."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import asyncpg
from msgspec import structs

from tapgate.auth.owners import OWNER_PREFIXES, Owner
from tapgate.business.owners.owner_table import STATUSES
from tapgate.core.records import NOT_FOUND_CODES
from tapgate.ledger import chart
from tapgate.runtime.store.database import Database
from tapgate_client import clock, ids, money
from tapgate_client.errors import require_found
from tapgate_client.schemas.owners import OwnerRecord, OwnerType

#: Account whose balance is the owner's balance.
MAIN_ACCOUNTS: Final[Mapping[OwnerType, str]] = {
    OwnerType.PROCESSOR: chart.SETTLEMENT,
    OwnerType.PARTNER: chart.CLEARING,
    OwnerType.AGENT: chart.FLOAT,
}


class MainAccount(NamedTuple):
    id: int
    holder_name: str
    currency: str


async def get_main_account(database: Database, owner: Owner) -> MainAccount:
    """Return the account whose balance is the owner's balance, or raise 404."""
    row = await database.fetchrow(
        "SELECT id, holder_name, currency FROM accounts WHERE owner_id = $1 AND kind = $2",
        owner.id,
        MAIN_ACCOUNTS[owner.type],
    )
    return MainAccount(*require_found(row, NOT_FOUND_CODES[OWNER_PREFIXES[owner.type]]))


async def get_record(database: Database, owner: Owner, *, with_balance: bool) -> OwnerRecord:
    """Return an owner's record. Owners are never deleted."""
    rows = await database.fetch(
        """SELECT id, kind, holder_name, status, balance, held, currency, created_at
           FROM accounts WHERE owner_id = $1""",
        owner.id,
    )
    accounts = {row["kind"]: row for row in rows}
    account = accounts[MAIN_ACCOUNTS[owner.type]]
    record = OwnerRecord(
        id=owner.public_id,
        type=owner.type,
        name=account["holder_name"],
        status=STATUSES[account["status"]],
        account_id=ids.encode(ids.ACCOUNT, account["id"]),
        currency=account["currency"],
        created_at=clock.format_rfc3339(account["created_at"]),
    )
    return _add_balances(record, accounts, account) if with_balance else record


def _add_balances(
    record: OwnerRecord, accounts: Mapping[str, asyncpg.Record], account: asyncpg.Record
) -> OwnerRecord:
    def format_amount(amount: int) -> str:
        return money.format_decimal(amount, record.currency)

    balances = {
        "balance": format_amount(account["balance"]),
        "available": format_amount(account["balance"] - account["held"]),
    }
    if chart.COMMISSION in accounts:
        commission = accounts[chart.COMMISSION]
        balances["commission_balance"] = format_amount(commission["balance"])
    return structs.replace(record, **balances)
