"""SQL queries that read recalls. The ledger writes them."""

from datetime import datetime
from typing import Any, Final

from tapgate.auth.disclosure import Reader
from tapgate.business.payments.recalls.model import NamedRecall, PendingAnswer, Recall
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.errors import Code, require_found
from tapgate_client.schemas.recalls import RecallFilters

_SELECT: Final = f"SELECT {', '.join(Recall.__struct_fields__)} FROM recalls"
_SELECT_NAMED: Final = f"""
    SELECT {", ".join(f"r.{name}" for name in Recall.__struct_fields__)},
           sender.owner_id AS sender_id, sender.holder_name AS sender_name,
           receiver.owner_id AS receiver_id, receiver.holder_name AS receiver_name
    FROM recalls r JOIN accounts sender ON sender.id = r.sender_account
    JOIN accounts receiver ON receiver.id = r.receiver_account"""
#: Ended per run of the worker.
_EXPIRY_BATCH: Final = 100


async def get(reader: Reader, recall_id: int) -> Recall:
    row = await reader.fetchrow(f"{_SELECT} WHERE id = $1", recall_id)
    return Recall(**require_found(row, Code.RECALL_NOT_FOUND))


async def get_named(reader: Reader, recall_id: int) -> NamedRecall:
    row = await reader.fetchrow(f"{_SELECT_NAMED} WHERE r.id = $1", recall_id)
    return NamedRecall(**require_found(row, Code.RECALL_NOT_FOUND))


async def get_by_transaction(reader: Any, transaction_id: int) -> Recall:
    row = await reader.fetchrow(f"{_SELECT} WHERE transaction_id = $1", transaction_id)
    return Recall(**require_found(row, Code.RECALL_NOT_FOUND))


async def list_page(database: Database, filters: RecallFilters) -> list[NamedRecall]:
    """Return a page of matching recalls, newest first, plus one row if there are more."""
    conditions = PageConditions(filters, "r.id")
    conditions.where_word("r.status", filters.status)
    conditions.where_id("r.transaction_id", ids.TRANSACTION, filters.transaction_id)
    return [NamedRecall(**row) for row in await conditions.fetch(database, _SELECT_NAMED)]


async def list_pending_answers(
    database: Database, receiver_id: int, now: datetime
) -> list[PendingAnswer]:
    """Return the open recalls that wait for a subscriber's answer, oldest first."""
    rows = await database.fetch(
        """SELECT r.id, r.transaction_id, r.amount, r.held_amount, r.currency, r.expires_at,
                  sender.public_name AS sender_name
           FROM recalls r
           JOIN accounts receiver ON receiver.id = r.receiver_account
           JOIN accounts sender ON sender.id = r.sender_account
           WHERE r.status = 'open' AND receiver.owner_id = $1 AND r.expires_at > $2
           ORDER BY r.id""",
        receiver_id,
        now,
    )
    return [PendingAnswer(**row) for row in rows]


async def list_expired(database: Database, now: datetime) -> list[Recall]:
    rows = await database.fetch(
        f"{_SELECT} WHERE status = 'open' AND expires_at <= $1 ORDER BY expires_at, id LIMIT $2",
        now,
        _EXPIRY_BATCH,
    )
    return [Recall(**row) for row in rows]


async def get_owner_id(database: Database, account_id: int) -> int:
    owner_id: int = await database.fetchval(
        "SELECT owner_id FROM accounts WHERE id = $1", account_id
    )
    return owner_id
