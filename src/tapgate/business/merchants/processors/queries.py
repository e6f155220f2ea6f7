"""SQL queries for processors."""

from tapgate.business.merchants.processors.model import Processor
from tapgate.ledger.companies import CompanyTable, save_status
from tapgate.runtime.store.rows import insert_row, update_row
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids

_COLUMNS = ("id", "account_id", "phone_number", "email", "created_at", "updated_at")
_TABLE = CompanyTable(
    "processors",
    Processor,
    ids.PROCESSOR,
    "p.phone_number, p.email, p.updated_at, a.status_reason AS suspend_reason",
)
get, require_exists, lock = _TABLE.get, _TABLE.require_exists, _TABLE.lock
list_page, sum_balances = _TABLE.list_page, _TABLE.sum_balances


async def add(tx: Transaction, processor: Processor) -> None:
    """Insert a processor. Its account must already be open."""
    await insert_row(tx, "processors", processor, _COLUMNS)


async def save_state(tx: Transaction, processor: Processor) -> None:
    """Store the status. The caller must hold the processor's lock."""
    await update_row(tx, "processors", processor, ("updated_at",))
    await save_status(tx, processor.account_id, processor.status, processor.suspend_reason)
