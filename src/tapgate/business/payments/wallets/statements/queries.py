"""SQL queries for statements: account movements and issued files."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import asyncpg

from tapgate.business.payments.wallets.statements.model import Movement, Period
from tapgate.core.id_generator import first_id_at
from tapgate.core.public_names import get_counterparty_name, hide_links
from tapgate.ledger.archive import archived
from tapgate.runtime.store.database import USE_GENERIC_PLANS, Database
from tapgate.runtime.store.id_ranges import MAX_ID
from tapgate.runtime.store.pipeline import send_ahead
from tapgate.runtime.store.rows import insert_values
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.schemas.wallets import StatementFormat

#: A long history may take longer than the default timeout allows.
_QUERY_TIMEOUT_SECONDS: Final = 30.0

#: Upper bound on the difference between the time in an ID and `created_at`. Without clock skew, the
#: difference is at most a few seconds.
_ID_TIME_TOLERANCE: Final = timedelta(days=1)

#: An account's transactions that moved its money since $2: IDs from $3 to $4, and the transactions
#: $5, with lower IDs, that completed after a review. $6 is the lowest ID of all. A wallet is always
#: the payer or the payee in a transaction that moves its money.
_FOUND: Final = """
    WITH found AS MATERIALIZED (
        SELECT * FROM (
            SELECT {columns} FROM transactions WHERE from_account = $1 AND id >= $3 AND id < $4
            UNION ALL
            SELECT {columns} FROM transactions WHERE to_account = $1 AND id >= $3 AND id < $4
            UNION ALL
            SELECT {columns} FROM transactions
            WHERE id = ANY ($5::bigint[]) AND id >= $6 AND id < $3
        ) AS t
        WHERE moved_at >= $2
    )"""
_MOVED_AT: Final = "coalesce(completed_at, created_at) AS moved_at"
_SIGNED_AMOUNT: Final = "CASE credit_account WHEN $1 THEN amount ELSE -amount END"

#: Movements before $7. MATERIALIZED and OFFSET 0 fix the plan: first the transactions, then the
#: entries of each transaction. If PostgreSQL underestimated the table sizes, it might otherwise
#: scan all entries for every transaction.
_MOVED: Final = f"""{_FOUND.format(columns=f"id, type, context, {_MOVED_AT}")},
    moved AS MATERIALIZED (
        SELECT t.*, e.position, e.amount, other.kind = 'fees' AS is_fee,
               other.kind = 'wallet' AS is_person, other.public_name, other.id AS other_id
        FROM found t
        CROSS JOIN LATERAL (
            SELECT position, debit_account, credit_account, {_SIGNED_AMOUNT} AS amount FROM entries
            WHERE transaction_id = t.id AND transaction_id >= $6
              AND $1 IN (debit_account, credit_account) OFFSET 0
        ) e
        JOIN accounts other
          ON other.id = CASE e.credit_account WHEN $1 THEN e.debit_account ELSE e.credit_account END
        WHERE moved_at < $7
    )"""

#: Reviewed transactions may complete long after their ID was generated, and have a table of their
#: own.
_FIND_RELEASED: Final = """
    SELECT transaction_id FROM released_transactions
    WHERE from_account = $1 AND completed_at >= $2 AND transaction_id < $3
    UNION
    SELECT transaction_id FROM released_transactions
    WHERE to_account = $1 AND completed_at >= $2 AND transaction_id < $3"""

#: Balance before all movements since $2. There may be thousands of them, so the entries are read in
#: the order of their index.
_BALANCE_BEFORE: Final = f"""{_FOUND.format(columns=f"id, {_MOVED_AT}")}
    SELECT balance - (
        SELECT coalesce(sum({_SIGNED_AMOUNT}), 0) FROM entries
        WHERE transaction_id = ANY (ARRAY(SELECT id FROM found)) AND transaction_id >= $6
          AND $1 IN (debit_account, credit_account))::bigint
    FROM accounts WHERE id = $1"""

_MOVEMENTS: Final = f"""{_MOVED}
    SELECT moved_at, id, type, is_fee, amount,
           coalesce(context ->> 'merchant_name', context ->> 'book_party') AS merchant_name,
           public_name, is_person,
           context ->> 'memo' AS memo, EXISTS (
               SELECT FROM subscribers s WHERE s.account_id = moved.other_id AND s.restricted
           ) AS is_restricted
    FROM moved ORDER BY moved_at, id, position"""

#: Movements before $7 by day in the time zone $8. There may be hundreds of thousands of them, so a
#: day's entries are read with one index scan.
#: With `$9`, also by terminal.
_DAILY_MOVEMENTS: Final = f"""{_FOUND.format(columns=f"id, type, context, {_MOVED_AT}")},
    days AS MATERIALIZED (
        SELECT (moved_at AT TIME ZONE $8)::date AS day, type,
               CASE WHEN $9 THEN context ->> 'terminal_id' END AS terminal, array_agg(id) AS ids
        FROM found WHERE moved_at < $7 GROUP BY 1, 2, 3
    )
    SELECT day, type, moved.*, terminal FROM days
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE NOT is_fee),
               coalesce(sum(amount) FILTER (WHERE NOT is_fee), 0)::bigint,
               coalesce(sum(amount) FILTER (WHERE is_fee), 0)::bigint
        FROM (
            SELECT {_SIGNED_AMOUNT} AS amount,
                   ARRAY[debit_account, credit_account] && ARRAY(
                       SELECT id FROM accounts WHERE owner_id IS NULL AND kind = 'fees') AS is_fee
            FROM entries
            WHERE transaction_id = ANY (days.ids) AND transaction_id >= $6
              AND $1 IN (debit_account, credit_account) OFFSET 0
        ) AS e
    ) AS moved"""


class WalletActivity(NamedTuple):
    opening_balance: int
    movements: list[Movement]


class DailyMovements(NamedTuple):
    """An account's movements on one day, for one transaction type."""

    day: date
    type: str
    transactions: int
    amount: int  # without fees; negative if the account was debited
    fees: int  # negative if the account was debited
    terminal_id: str | None = None


async def load_activity(
    database: Database,
    account_id: int,
    start: datetime,
    end: datetime,
    to_movement: Callable[[asyncpg.Record], Movement] | None = None,
) -> WalletActivity:
    """Load a period's opening balance and movements from one snapshot.

    The balances are the current balance minus all movements since then. This is exact, and the
    query is faster for a more recent period.
    """
    timeout = _QUERY_TIMEOUT_SECONDS
    async with _open_snapshot(database, start, "from_date") as reader:
        later = await _find_range(reader, account_id, end)
        period = await _find_range(reader, account_id, start, end)
        closing = await reader.fetchval(_BALANCE_BEFORE, *later, timeout=timeout)
        rows = await reader.fetch(_MOVEMENTS, *period, end, timeout=timeout)
    movements = [*map(to_movement or _to_movement, rows)]
    return WalletActivity(closing - sum(movement.amount for movement in movements), movements)


def _to_movement(row: asyncpg.Record) -> Movement:
    memo = row["memo"]
    return Movement(
        row["moved_at"],
        row["id"],
        row["type"],
        row["is_fee"],
        row["amount"],
        get_counterparty_name(row["merchant_name"], row["public_name"], is_person=row["is_person"]),
        None if memo is None else hide_links(memo),
    )


def to_owner_movement(row: asyncpg.Record) -> Movement:
    """Return a movement as an owner may see it: restricted customers have no name and no memo."""
    if row["is_restricted"]:
        name, memo = "a customer", None
    else:
        name, memo = (
            get_counterparty_name(None, row["public_name"], is_person=row["is_person"]),
            row["memo"] and hide_links(row["memo"]),
        )
    return Movement(
        row["moved_at"], row["id"], row["type"], row["is_fee"], row["amount"], name, memo
    )


async def sum_movements(
    database: Database,
    account_id: int,
    start: datetime,
    end: datetime,
    zone: ZoneInfo,
    *,
    by_terminal: bool = False,
) -> list[DailyMovements]:
    """Return the movements of any account by day and type, and by terminal if requested."""
    async with _open_snapshot(database, start, "from") as reader:
        arguments = await _find_range(reader, account_id, start, end)
        rows = await reader.fetch(
            _DAILY_MOVEMENTS,
            *arguments,
            end,
            zone.key,
            by_terminal,
            timeout=_QUERY_TIMEOUT_SECONDS,
        )
    return [DailyMovements(*row) for row in rows]


@asynccontextmanager
async def _open_snapshot(
    database: Database, start: datetime, field: str
) -> AsyncIterator[asyncpg.Connection]:
    """Open a snapshot for a period that begins at `start`.

    `field` is the request's field to report if the period begins in an archived month.
    """
    async with database.snapshot(timeout_seconds=_QUERY_TIMEOUT_SECONDS) as reader:
        archived.lock_live(reader)
        await archived.require_live(reader, start, field)
        # An index exists for every part of the query. With outdated statistics of growing tables,
        # PostgreSQL might choose sequential scans.
        send_ahead(reader, "SET LOCAL enable_seqscan = off")
        send_ahead(reader, USE_GENERIC_PLANS)
        yield reader


async def _find_range(
    reader: asyncpg.Connection, account_id: int, start: datetime, end: datetime | None = None
) -> tuple[object, ...]:
    """Return the arguments of `_FOUND` for movements from `start` to `end`."""
    first_id = min(first_id_at(start - _ID_TIME_TOLERANCE), MAX_ID)
    end_id = MAX_ID if end is None else min(first_id_at(end + _ID_TIME_TOLERANCE), MAX_ID)
    rows = await reader.fetch(_FIND_RELEASED, account_id, start, first_id)
    released = [row["transaction_id"] for row in rows]
    return account_id, start, first_id, end_id, released, min([first_id, *released])


class StatementFile(NamedTuple):
    id: int
    format: StatementFormat
    period: Period
    sealed: bytes


async def count_files(tx: asyncpg.Connection, subscriber_id: int) -> int:
    """Count a subscriber's files.

    The caller must hold the lock taken by `lock_restriction`, so that concurrent requests do not
    exceed the maximum.
    """
    count: int = await tx.fetchval(
        "SELECT count(*) FROM statements WHERE subscriber_id = $1", subscriber_id
    )
    return count


async def count_owner_files(tx: Transaction, owner_id: int) -> int:
    """Count an owner's files. The caller must hold the lock on the owner's account."""
    count: int = await tx.fetchval("SELECT count(*) FROM statements WHERE owner_id = $1", owner_id)
    return count


async def add_file(tx: Transaction, file: StatementFile, **others: bytes | datetime | int) -> None:
    """Insert a file. `others` are its holder, the token hash, and the creation and expiry times."""
    await insert_values(
        tx,
        "statements",
        id=file.id,
        from_date=file.period.first,
        to_date=file.period.last,
        format=file.format,
        file=file.sealed,
        **others,
    )


async def find_file(
    database: Database, token_hashes: Sequence[bytes], now: datetime
) -> StatementFile | None:
    row = await database.fetchrow(
        """SELECT id, format, from_date, to_date, file FROM statements
           WHERE token_hash = ANY ($1) AND expires_at > $2""",
        token_hashes,
        now,
    )
    if row is None:
        return None
    return StatementFile(
        row["id"], row["format"], Period(row["from_date"], row["to_date"]), row["file"]
    )
