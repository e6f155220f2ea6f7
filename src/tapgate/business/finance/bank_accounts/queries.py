"""SQL queries for bank accounts."""

from typing import Any, Final

from tapgate.auth.owners import BANK_ACCOUNTS, OwnerView, limit_to_owner
from tapgate.business.finance.bank_accounts.model import BankAccount, parse_owner_id
from tapgate.core.records import require_record
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.schemas.bank_accounts import BankAccountFilters, BankAccountStatus

_STORED: Final = tuple(name for name in BankAccount.__struct_fields__ if name != "owner_name")
_SELECT: Final = f"""
    SELECT {", ".join(f"b.{name}" for name in _STORED)}, (
        SELECT holder_name FROM accounts WHERE owner_id = b.owner_id AND kind <> 'commission'
    ) AS owner_name
    FROM bank_accounts b"""


async def get(reader: Any, account_id: int) -> BankAccount:
    row = await reader.fetchrow(f"{_SELECT} WHERE b.id = $1", account_id)
    return BankAccount(**require_record(ids.BANK_ACCOUNT, row))


async def lock(tx: Any, account_id: int) -> BankAccount:
    await tx.execute("SELECT FROM bank_accounts WHERE id = $1 FOR UPDATE", account_id)
    return await get(tx, account_id)


async def list_page(
    database: Database, filters: BankAccountFilters, view: OwnerView | None
) -> list[BankAccount]:
    conditions = PageConditions(filters, "b.id")
    limit_to_owner(conditions, view, BANK_ACCOUNTS)
    owner = None if filters.owner_id is None else parse_owner_id(filters.owner_id)
    conditions.where("b.owner_id = {}", owner and owner[1])
    conditions.where("b.owner_type = {}", filters.owner_type)
    conditions.where("b.status = {}", filters.status)
    return [BankAccount(**row) for row in await conditions.fetch(database, _SELECT)]


async def list_verified(reader: Any, owner_type: str, owner_id: int | None) -> list[BankAccount]:
    rows = await reader.fetch(
        f"""{_SELECT} WHERE b.owner_type = $1 AND b.owner_id IS NOT DISTINCT FROM $2
            AND b.status = $3 ORDER BY b.id""",
        owner_type,
        owner_id,
        BankAccountStatus.VERIFIED,
    )
    return [BankAccount(**row) for row in rows]
