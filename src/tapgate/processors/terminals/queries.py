"""SQL queries for terminals. `auth` manages their signing keys."""

import asyncpg

from tapgate.errors import Code, require_found
from tapgate.processors.terminals.model import Terminal
from tapgate.schemas.pagination import PageQuery
from tapgate.store.conditions import PageConditions
from tapgate.store.database import Database

_SELECT = """
    SELECT t.id, t.processor_id, t.name, t.status, t.last_seen_at, t.created_at,
           (SELECT max(id) FROM hmac_keys
            WHERE terminal_id = t.id AND deleted_at IS NULL) AS key_id
    FROM terminals t"""


async def lock(tx: asyncpg.Connection, terminal_id: int, *, processor_id: int) -> Terminal:
    """Lock and return a terminal. A terminal of another processor is treated as not found."""
    row = await tx.fetchrow(
        f"{_SELECT} WHERE t.id = $1 AND t.processor_id = $2 FOR NO KEY UPDATE OF t",
        terminal_id,
        processor_id,
    )
    return Terminal(**require_found(row, Code.TERMINAL_NOT_FOUND))


async def list_page(database: Database, processor_id: int, query: PageQuery) -> list[Terminal]:
    conditions = PageConditions(query, "t.id")
    conditions.where("t.processor_id = {}", processor_id)
    return [Terminal(**row) for row in await conditions.fetch(database, _SELECT)]


async def add(tx: asyncpg.Connection, terminal: Terminal) -> None:
    await tx.execute(
        "INSERT INTO terminals (id, processor_id, name, status, created_at) "
        "VALUES ($1, $2, $3, $4, $5)",
        terminal.id,
        terminal.processor_id,
        terminal.name,
        terminal.status,
        terminal.created_at,
    )


async def save_state(tx: asyncpg.Connection, terminal: Terminal) -> None:
    """Store the status. The caller must hold the terminal's lock."""
    await tx.execute("UPDATE terminals SET status = $2 WHERE id = $1", terminal.id, terminal.status)
