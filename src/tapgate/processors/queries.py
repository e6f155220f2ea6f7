"""SQL queries for processors.

Status, name and balance are stored on the account row. The lock on the account row also guards the
processor row.
"""

from tapgate import ids
from tapgate.errors import ApiError, Code, require_found
from tapgate.ledger.accounts import lock_account
from tapgate.processors.model import ACCOUNT_STATUSES, Processor
from tapgate.schemas.processors import ProcessorFilters
from tapgate.store.conditions import PageConditions
from tapgate.store.database import Database
from tapgate.store.rows import insert_row, update_row
from tapgate.store.transaction import Transaction

_COLUMNS = ("id", "account_id", "phone_number", "email", "created_at", "updated_at")
_SELECT = f"""
    SELECT {", ".join(f"p.{column}" for column in _COLUMNS)},
           a.holder_name AS name, a.currency, a.balance, a.status_reason AS suspend_reason,
           CASE a.status WHEN 'active' THEN 'active' ELSE 'suspended' END AS status
    FROM processors p JOIN accounts a ON a.id = p.account_id"""


async def get(reader: Database | Transaction, processor_id: int) -> Processor:
    row = await reader.fetchrow(f"{_SELECT} WHERE p.id = $1", processor_id)
    return Processor(**require_found(row, Code.PROCESSOR_NOT_FOUND))


async def require_exists(reader: Database | Transaction, processor_id: int) -> None:
    """Raise `PROCESSOR_NOT_FOUND` unless the processor exists."""
    if not await reader.fetchval(
        "SELECT EXISTS (SELECT FROM processors WHERE id = $1)", processor_id
    ):
        raise ApiError(Code.PROCESSOR_NOT_FOUND)


async def lock(tx: Transaction, processor_id: int) -> Processor:
    """Lock a processor's account, which serializes status changes, and return the processor."""
    account_id = await tx.fetchval("SELECT account_id FROM processors WHERE id = $1", processor_id)
    await lock_account(tx, require_found(account_id, Code.PROCESSOR_NOT_FOUND))
    # Read after locking: another database transaction may have changed the row before the lock was
    # granted.
    return await get(tx, processor_id)


async def list_page(database: Database, filters: ProcessorFilters) -> list[Processor]:
    conditions = PageConditions(filters, "p.id")
    conditions.where("a.status = {}", filters.status and ACCOUNT_STATUSES[filters.status])
    conditions.search(filters.search, "p.search_text", id_column="p.id", prefix=ids.PROCESSOR)
    return [Processor(**row) for row in await conditions.fetch(database, _SELECT)]


async def add(tx: Transaction, processor: Processor) -> None:
    """Insert a processor. Its account must already be open."""
    await insert_row(tx, "processors", processor, _COLUMNS)


async def save_state(tx: Transaction, processor: Processor) -> None:
    """Store the status. The caller must hold the processor's lock."""
    await update_row(tx, "processors", processor, ("updated_at",))
    await tx.execute(
        "UPDATE accounts SET status = $2, status_reason = $3, updated_at = $4 WHERE id = $1",
        processor.account_id,
        ACCOUNT_STATUSES[processor.status],
        processor.suspend_reason,
        processor.updated_at,
    )
