"""SQL queries for processors."""

from tapgate.business.merchants.processors.model import Processor
from tapgate.business.owners.owner_table import OwnerTable
from tapgate.runtime.store.rows import insert_row
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids

_COLUMNS = ("id", "account_id", "phone_number", "email", "created_at", "updated_at")
TABLE = OwnerTable(
    "processor",
    Processor,
    ids.PROCESSOR,
    "a.balance, p.phone_number, p.email, p.updated_at, a.status_reason AS suspend_reason",
)
get, require_exists, list_page = TABLE.get, TABLE.require_exists, TABLE.list_page


async def add(tx: Transaction, processor: Processor) -> None:
    """Insert a processor. Its account must already be open."""
    await insert_row(tx, "processors", processor, _COLUMNS)
