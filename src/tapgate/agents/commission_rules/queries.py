"""SQL queries for commission rules."""

import asyncpg

from tapgate.agents.commission_rules.model import StoredRule
from tapgate.store.database import Database


async def list_rules(reader: Database | asyncpg.Connection) -> list[StoredRule]:
    rows = await reader.fetch(
        "SELECT type, tier, rate, minimum_amount FROM commission_rules ORDER BY type, tier"
    )
    return [StoredRule(**row) for row in rows]


async def lock(tx: asyncpg.Connection) -> None:
    """Serialize replacements without blocking reads."""
    await tx.execute("LOCK TABLE commission_rules IN SHARE ROW EXCLUSIVE MODE")


async def replace_all(tx: asyncpg.Connection, rules: list[StoredRule]) -> None:
    await tx.execute("DELETE FROM commission_rules")
    await tx.executemany(
        "INSERT INTO commission_rules (type, tier, rate, minimum_amount) VALUES ($1, $2, $3, $4)",
        [(rule.type, rule.tier, rule.rate, rule.minimum_amount) for rule in rules],
    )
