"""SQL queries for batches and their lines."""

from typing import Any, Final

from tapgate.business.finance.batches.model import Batch, PayableLine, StoredLine, to_record
from tapgate.core.records import require_record
from tapgate.http.api.services import Services
from tapgate.ledger.commands import ScopedIdempotencyKey
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.batches import (
    BatchFilters,
    BatchLineFilters,
    BatchLineStatus,
    BatchRecord,
)

_SELECT: Final = f"""
    SELECT {", ".join(f"b.{name}" for name in Batch.__struct_fields__ if name != "source_name")},
           a.holder_name AS source_name
    FROM batches b LEFT JOIN accounts a ON a.owner_id = b.partner_id"""
#: The lines that were not paid before a cancellation are skipped. A line under review is not.
_LINE_STATUS: Final = """CASE WHEN l.status = 'pending' AND l.transaction_id IS NULL
    AND b.status = 'cancelled' THEN 'skipped' ELSE l.status END"""
_SELECT_LINES: Final = f"""
    SELECT l.row, l.phone_number, l.card_serial, l.amount_text, l.amount, l.reference,
           {_LINE_STATUS} AS status, l.code, l.problem, l.transaction_id
    FROM batch_lines l JOIN batches b ON b.id = l.batch_id"""


async def get(reader: Any, batch_id: int) -> Batch:
    row = await reader.fetchrow(f"{_SELECT} WHERE b.id = $1", batch_id)
    return Batch(**require_record(ids.BATCH, row))


async def lock(tx: Any, batch_id: int) -> Batch:
    """Return a batch whose status and counters cannot change until the transaction ends."""
    await tx.execute("SELECT FROM batches WHERE id = $1 FOR NO KEY UPDATE", batch_id)
    return await get(tx, batch_id)


async def list_page(database: Database, filters: BatchFilters) -> list[Batch]:
    conditions = PageConditions(filters, "b.id")
    conditions.where_word("b.status", filters.status)
    return [Batch(**row) for row in await conditions.fetch(database, _SELECT)]


async def load_records(services: Services, numbers: list[int]) -> dict[int, BatchRecord]:
    """Return the records of batches by their IDs."""
    rows = await services.database.fetch(f"{_SELECT} WHERE b.id = ANY ($1::bigint[])", numbers)
    return {row["id"]: to_record(Batch(**row)) for row in rows}


async def find_created(tx: Any, key: ScopedIdempotencyKey) -> Batch | None:
    """Return the batch that an earlier request with this key has created."""
    return await _find_replay(tx, "", key)


async def find_started(tx: Any, key: ScopedIdempotencyKey) -> Batch | None:
    """Return the batch that an earlier request with this key has started."""
    return await _find_replay(tx, "run_", key)


async def _find_replay(tx: Any, prefix: str, key: ScopedIdempotencyKey) -> Batch | None:
    row = await tx.fetchrow(
        f"""SELECT id, {prefix}fingerprint AS fingerprint FROM batches
            WHERE {prefix}scope = $1 AND {prefix}request_id = $2""",
        key.scope,
        key.request_id,
    )
    if row is None:
        return None
    if row["fingerprint"] != key.fingerprint:
        raise ApiError(Code.DUPLICATE_REQUEST)
    return await get(tx, row["id"])


def _build_line_conditions(batch_id: int, filters: BatchLineFilters) -> PageConditions:
    conditions = PageConditions(filters, "l.row")
    conditions.where("l.batch_id = {}", batch_id)
    conditions.where_word(_LINE_STATUS, filters.status)
    return conditions


async def list_lines(
    database: Database, batch_id: int, filters: BatchLineFilters
) -> list[StoredLine]:
    conditions = _build_line_conditions(batch_id, filters)
    rows = await conditions.fetch(database, _SELECT_LINES)
    return [build_line(row) for row in rows]


async def fetch_all_lines(reader: Any, batch_id: int, status: BatchLineStatus | None) -> list[Any]:
    """Return the rows of all lines, for `build_line`."""
    rows: list[Any] = await reader.fetch(
        f"""{_SELECT_LINES} WHERE l.batch_id = $1 AND ($2::text IS NULL OR {_LINE_STATUS} = $2)
            ORDER BY l.row""",
        batch_id,
        status,
    )
    return rows


def build_line(row: Any) -> StoredLine:
    return StoredLine(**row)


async def list_payable(reader: Any, batch_id: int, *, after: int, limit: int) -> list[PayableLine]:
    """Return the next lines that were neither paid nor failed, in order."""
    rows = await reader.fetch(
        """SELECT row, subscriber_id, amount, reference FROM batch_lines
           WHERE batch_id = $1 AND row > $2 AND status = 'pending' AND transaction_id IS NULL
           ORDER BY row LIMIT $3""",
        batch_id,
        after,
        limit,
    )
    return [PayableLine(*row) for row in rows]


async def has_pending(reader: Any, batch_id: int) -> bool:
    """Return whether a line is not decided yet, or is under review."""
    sql = "SELECT EXISTS (SELECT FROM batch_lines WHERE batch_id = $1 AND status = 'pending')"
    return bool(await reader.fetchval(sql, batch_id))
