"""SQL queries for the branding."""

import asyncpg

from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction

_COLUMNS = "name, color, support_contact, statement_header, logo, updated_at"


async def find(reader: Database | Transaction) -> asyncpg.Record | None:
    """Return the stored values, or None if all have their defaults."""
    return await reader.fetchrow(f"SELECT {_COLUMNS} FROM branding")


async def lock(tx: Transaction) -> None:
    await tx.execute("LOCK TABLE branding IN SHARE ROW EXCLUSIVE MODE")


async def save(tx: Transaction, values: dict[str, str | bytes | None]) -> None:
    await tx.execute(
        """INSERT INTO branding (name, color, support_contact, statement_header, logo, updated_at)
           VALUES ($1, $2, $3, $4, $5, $6)
           ON CONFLICT (is_only) DO UPDATE
           SET name = excluded.name, color = excluded.color,
               support_contact = excluded.support_contact,
               statement_header = excluded.statement_header, logo = excluded.logo,
               updated_at = excluded.updated_at""",
        values["name"],
        values["color"],
        values["support_contact"],
        values["statement_header"],
        values["logo"],
        tx.now(),
    )
