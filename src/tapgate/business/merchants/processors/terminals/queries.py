"""SQL queries for terminals. `auth` manages their signing keys."""

from tapgate.business.merchants.processors.terminals.model import Terminal
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.rows import insert_row, update_row
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import Code, require_found
from tapgate_client.schemas.pagination import PageQuery

_SELECT = """
    SELECT t.id, t.processor_id, t.name, t.status, t.last_seen_at, t.created_at,
           (SELECT max(id) FROM hmac_keys
            WHERE terminal_id = t.id AND deleted_at IS NULL) AS api_key_id
    FROM terminals t"""


async def get(
    reader: Database | Transaction, terminal_id: int, *, processor_id: int, for_update: bool = False
) -> Terminal:
    """Return a terminal. A terminal of another processor is treated as not found."""
    lock = "FOR NO KEY UPDATE OF t" if for_update else ""
    row = await reader.fetchrow(
        f"{_SELECT} WHERE t.id = $1 AND t.processor_id = $2 {lock}", terminal_id, processor_id
    )
    return Terminal(**require_found(row, Code.TERMINAL_NOT_FOUND))


async def list_page(database: Database, processor_id: int, query: PageQuery) -> list[Terminal]:
    conditions = PageConditions(query, "t.id")
    conditions.where("t.processor_id = {}", processor_id)
    return [Terminal(**row) for row in await conditions.fetch(database, _SELECT)]


async def add(tx: Transaction, terminal: Terminal) -> None:
    columns = ("id", "processor_id", "name", "status", "created_at")
    await insert_row(tx, "terminals", terminal, columns)


async def save_state(tx: Transaction, terminal: Terminal) -> None:
    """Store the status. The caller must hold the terminal's lock."""
    await update_row(tx, "terminals", terminal, ("status",))
