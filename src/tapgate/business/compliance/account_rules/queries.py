"""SQL queries for account rules."""

import msgspec

from tapgate.ledger.rules.kyc_limits import AccountRule
from tapgate.ledger.rules.loaded_rules import SELECT_ACCOUNT_RULES
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction


async def get(
    reader: Database | Transaction, kyc_level: int, *, for_update: bool = False
) -> AccountRule:
    sql = f"{SELECT_ACCOUNT_RULES} WHERE kyc_level = $1"
    row = await reader.fetchrow(
        f"{sql} FOR UPDATE OF account_rules" if for_update else sql, kyc_level
    )
    assert row is not None, "an installation has a rule for every level"
    return AccountRule(**row)


async def save(tx: Transaction, rule: AccountRule) -> None:
    await tx.execute(
        """UPDATE account_rules
           SET max_balance = $2, max_transaction = $3, daily_limit = $4, monthly_limit = $5,
               no_pin_limit = $6, requirements = $7
           WHERE kyc_level = $1""",
        *msgspec.structs.astuple(rule)[:-1],
    )
    if rule.proof_required_above is None:
        await tx.execute("DELETE FROM proof_rules WHERE kyc_level = $1", rule.kyc_level)
        return
    await tx.execute(
        """INSERT INTO proof_rules (kyc_level, proof_required_above) VALUES ($1, $2)
           ON CONFLICT (kyc_level)
           DO UPDATE SET proof_required_above = EXCLUDED.proof_required_above""",
        rule.kyc_level,
        rule.proof_required_above,
    )
