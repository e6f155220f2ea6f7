"""SQL queries for closed days and the entries of a day."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Final, NamedTuple

import msgspec

from tapgate.business.finance.day_close.model import StoredDay
from tapgate.core.id_generator import first_id_at, get_time
from tapgate.ledger.archive.archived import Archive
from tapgate.runtime.store.archive_files import has_tables
from tapgate.runtime.store.conditions import Conditions
from tapgate.runtime.store.id_ranges import add_range
from tapgate_client.schemas.day_close import ClosedDayQuery

_COLUMNS: Final = ", ".join(StoredDay.__struct_fields__)
_SELECT: Final = f"SELECT {_COLUMNS} FROM closed_days"
_HASH_BYTES: Final = 32


class Chunk(NamedTuple):
    """Leaves of consecutive transactions, and their root."""

    number: int
    transaction_ids: Sequence[int]
    leaves: bytes
    node: bytes


async def find_day(reader: Any, day: date) -> StoredDay | None:
    return _build(await reader.fetchrow(f"{_SELECT} WHERE day = $1", day))


async def find_latest_day(reader: Any, before: date = date.max) -> StoredDay | None:
    """Return the last closed day before a date."""
    sql = f"{_SELECT} WHERE day < $1 ORDER BY day DESC LIMIT 1"
    return _build(await reader.fetchrow(sql, before))


async def find_day_at(reader: Any, moment: datetime) -> StoredDay | None:
    """Return the closed day with this time."""
    sql = f"{_SELECT} WHERE starts_at <= $1 AND ends_at > $1 AND transactions > 0"
    return _build(await reader.fetchrow(sql, moment))


async def list_days(reader: Any, query: ClosedDayQuery) -> list[StoredDay]:
    """Return closed days, newest first, plus one if there are more."""
    conditions = Conditions()
    ordinal = query.before_id
    if ordinal <= date.max.toordinal():
        conditions.where("day < {}", date.fromordinal(max(1, ordinal)))
    conditions.where("day >= {}", query.from_ and date.fromisoformat(query.from_))
    conditions.where("day <= {}", query.to and date.fromisoformat(query.to))
    limit = conditions.bind(query.limit + 1)
    rows = await reader.fetch(
        f"{_SELECT} WHERE {conditions} ORDER BY day DESC LIMIT {limit}", *conditions.values
    )
    return [StoredDay(**row) for row in rows]


def _build(row: Any) -> StoredDay | None:
    return None if row is None else StoredDay(**row)


async def add_day(tx: Any, row: StoredDay) -> None:
    values = msgspec.structs.astuple(row)
    placeholders = ", ".join(f"${number}" for number in range(1, len(values) + 1))
    await tx.execute(f"INSERT INTO closed_days ({_COLUMNS}) VALUES ({placeholders})", *values)


async def add_chunk(tx: Any, day: date, chunk: Chunk) -> None:
    await tx.execute(
        """INSERT INTO closed_day_chunks
               (day, number, first_id, last_id, node, transaction_ids, leaves)
           VALUES ($1, $2, $3, $4, $5, $6, $7)""",
        day,
        chunk.number,
        chunk.transaction_ids[0],
        chunk.transaction_ids[-1],
        chunk.node,
        chunk.transaction_ids,
        chunk.leaves,
    )


async def list_nodes(reader: Any, day: date) -> list[bytes]:
    """Return the roots of a day's chunks, in order."""
    rows = await reader.fetch(
        "SELECT node FROM closed_day_chunks WHERE day = $1 ORDER BY number", day
    )
    return [row["node"] for row in rows]


async def find_chunk(reader: Any, day: date, transaction_id: int) -> Chunk | None:
    """Return the chunk of a day that would have the transaction."""
    row = await reader.fetchrow(
        """SELECT number, transaction_ids, leaves, node FROM closed_day_chunks
           WHERE day = $1 AND last_id >= $2 ORDER BY last_id LIMIT 1""",
        day,
        transaction_id,
    )
    return None if row is None else Chunk(*row)


def split_leaves(leaves: bytes) -> list[bytes]:
    return [leaves[at : at + _HASH_BYTES] for at in range(0, len(leaves), _HASH_BYTES)]


async def list_entries(connection: Any, transaction_ids: Sequence[int]) -> list[Any]:
    """Return the entries of transactions with both account kinds, by ID and position."""
    rows: list[Any] = await connection.fetch(
        """SELECT e.transaction_id, e.position, e.debit_account, e.credit_account, e.amount,
                  debit.kind AS debit_kind, credit.kind AS credit_kind, debit.currency
           FROM entries e
           JOIN accounts debit ON debit.id = e.debit_account
           JOIN accounts credit ON credit.id = e.credit_account
           WHERE e.transaction_id = ANY ($1::bigint[])
             AND e.transaction_id >= $2 AND e.transaction_id <= $3
           ORDER BY e.transaction_id, e.position""",
        *add_range(transaction_ids),
    )
    return rows


async def find_first_time(reader: Any, archive_end: int) -> datetime | None:
    """Return the time of the first transaction that is not archived."""
    first_id = await reader.fetchval("SELECT min(id) FROM transactions WHERE id >= $1", archive_end)
    return None if first_id is None else get_time(first_id)


class PostedTransaction(NamedTuple):
    """Transaction in the ledger or the archive, with its accounts and when it was posted."""

    id: int
    account_ids: tuple[int | None, ...]
    completed_at: datetime | None
    currency: str
    entries: Sequence[Any]


async def find_archived(
    reader: Any, archive: Archive, transaction_id: int
) -> PostedTransaction | None:
    """Return an archived transaction, or None if its month is not in the database."""
    for month in archive.months:
        if month.first_id <= transaction_id < month.end_id and await has_tables(reader, month.name):
            row = await reader.fetchrow(
                f"""SELECT from_account, to_account, completed_at, currency
                    FROM archive.transactions_{month.name} WHERE id = $1""",
                transaction_id,
            )
            if row is None:
                return None
            entries = await reader.fetch(
                f"""SELECT position, debit_account, credit_account, amount
                    FROM archive.entries_{month.name}
                    WHERE transaction_id = $1 ORDER BY position""",
                transaction_id,
            )
            return PostedTransaction(transaction_id, tuple(row[:2]), row[2], row[3], entries)
    return None


async def has_entries_before(reader: Any, end: datetime) -> bool:
    """Return whether the ledger has a transaction before a time, archived months included."""
    found: bool = await reader.fetchval(
        """SELECT EXISTS (SELECT FROM archived_months)
               OR EXISTS (SELECT FROM transactions WHERE id < $1)""",
        first_id_at(end),
    )
    return found
