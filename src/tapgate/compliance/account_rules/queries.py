"""SQL queries for account rules."""

import asyncpg
import msgspec

from tapgate.ledger.rules import AccountRule
from tapgate.store.database import Database


async def get(database: Database, kyc_level: int) -> AccountRule:
    row = await database.fetchrow("SELECT * FROM account_rules WHERE kyc_level = $1", kyc_level)
    assert row is not None, "an installation has a rule for every level"
    return AccountRule(**row)


async def lock(tx: asyncpg.Connection, kyc_level: int) -> AccountRule:
    row = await tx.fetchrow(
        "SELECT * FROM account_rules WHERE kyc_level = $1 FOR UPDATE", kyc_level
    )
    return AccountRule(**row)


async def save(tx: asyncpg.Connection, rule: AccountRule) -> None:
    await tx.execute(
        """UPDATE account_rules
           SET max_balance = $2, max_transaction = $3, daily_limit = $4, monthly_limit = $5,
               no_pin_limit = $6, requirements = $7
           WHERE kyc_level = $1""",
        *msgspec.structs.astuple(rule),
    )
