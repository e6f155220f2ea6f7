"""SQL queries for account rules."""

import msgspec

from tapgate.rules.limits import AccountRule
from tapgate.store.database import Database
from tapgate.store.transaction import Transaction


async def get(
    reader: Database | Transaction, kyc_level: int, *, for_update: bool = False
) -> AccountRule:
    sql = f"SELECT {AccountRule.list_columns()} FROM account_rules WHERE kyc_level = $1"
    row = await reader.fetchrow(f"{sql} FOR UPDATE" if for_update else sql, kyc_level)
    assert row is not None, "an installation has a rule for every level"
    return AccountRule(**row)


async def save(tx: Transaction, rule: AccountRule) -> None:
    await tx.execute(
        """UPDATE account_rules
           SET max_balance = $2, max_transaction = $3, daily_limit = $4, monthly_limit = $5,
               no_pin_limit = $6, requirements = $7
           WHERE kyc_level = $1""",
        *msgspec.structs.astuple(rule),
    )
