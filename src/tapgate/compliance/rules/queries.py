"""The SQL of compliance rules."""

from typing import Final

import asyncpg

from tapgate.compliance.rules.model import WatchRule, not_found
from tapgate.edge.pages import PageQuery
from tapgate.store.database import Database

_SELECT: Final = """
    SELECT id, name, type, transaction_types, threshold, window_seconds, action, severity, status
    FROM compliance_rules"""


async def page(database: Database, query: PageQuery) -> list[WatchRule]:
    """One more than the limit."""
    rows = await database.fetch(
        f"{_SELECT} WHERE id < $1 ORDER BY id DESC LIMIT $2", query.before, query.limit + 1
    )
    return [WatchRule(**row) for row in rows]


async def get(database: Database, rule_id: int) -> WatchRule:
    row = await database.fetchrow(f"{_SELECT} WHERE id = $1", rule_id)
    if row is None:
        raise not_found()
    return WatchRule(**row)


async def lock(tx: asyncpg.Connection, rule_id: int) -> WatchRule:
    row = await tx.fetchrow(f"{_SELECT} WHERE id = $1 FOR NO KEY UPDATE", rule_id)
    if row is None:
        raise not_found()
    return WatchRule(**row)


async def save(tx: asyncpg.Connection, rule: WatchRule) -> None:
    await tx.execute(
        """UPDATE compliance_rules
           SET name = $2, transaction_types = $3, threshold = $4, window_seconds = $5,
               action = $6, severity = $7, status = $8
           WHERE id = $1""",
        rule.id,
        rule.name,
        rule.transaction_types,
        rule.threshold,
        rule.window_seconds,
        rule.action,
        rule.severity,
        rule.status,
    )
