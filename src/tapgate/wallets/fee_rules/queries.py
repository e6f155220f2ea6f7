"""SQL queries for fee rules."""

import asyncpg

from tapgate.store.database import Database
from tapgate.wallets.fee_rules.model import StoredFeeStep


async def list_steps(reader: Database | asyncpg.Connection) -> list[StoredFeeStep]:
    rows = await reader.fetch(
        "SELECT type, up_to, rate, payer FROM fee_rules ORDER BY type, up_to NULLS LAST"
    )
    return [StoredFeeStep(**row) for row in rows]


async def lock(tx: asyncpg.Connection) -> None:
    """Lock the table against concurrent replacements, but not against reads."""
    await tx.execute("LOCK TABLE fee_rules IN SHARE ROW EXCLUSIVE MODE")


async def replace_all(tx: asyncpg.Connection, steps: list[StoredFeeStep]) -> None:
    await tx.execute("DELETE FROM fee_rules")
    await tx.executemany(
        "INSERT INTO fee_rules (type, up_to, rate, payer) VALUES ($1, $2, $3, $4)",
        [(step.type, step.up_to, step.rate, step.payer) for step in steps],
    )
