"""SQL queries for statements: movements of a wallet, and issued files."""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

import asyncpg

from tapgate import ids
from tapgate.ledger import archived
from tapgate.store.database import USE_GENERIC_PLANS, Database
from tapgate.store.id_ranges import MAX_ID
from tapgate.store.rows import insert_values
from tapgate.store.transaction import Transaction
from tapgate.wallets.statements.model import FileFormat, Movement, Period

#: A long history may take longer than the default timeout allows.
_QUERY_TIMEOUT_SECONDS: Final = 30.0
CLEANUP_BATCH_SIZE: Final = 200

#: Upper bound on the difference between the time in an ID and `created_at`. Without clock skew, the
#: difference is at most a few seconds.
_ID_TIME_TOLERANCE: Final = timedelta(days=1)

#: All movements of a wallet since a point in time. A wallet is always the payer or the payee of a
#: transaction that moves its money. $4 are the IDs below $3 of transactions that completed after a
#: review, and $5 is the lowest ID of all. MATERIALIZED and OFFSET 0 fix the plan:
#: first the transactions, then the entries of each transaction. If PostgreSQL underestimated the
#: size of the tables, it might otherwise scan all entries for every transaction.
_MOVEMENTS_SINCE: Final = """
    WITH found AS MATERIALIZED (
        SELECT * FROM transactions WHERE from_account = $1 AND id >= $3
        UNION ALL
        SELECT * FROM transactions WHERE to_account = $1 AND id >= $3
        UNION ALL
        SELECT * FROM transactions WHERE id = ANY ($4::bigint[]) AND id >= $5 AND id < $3
    ), moved AS MATERIALIZED (
        SELECT coalesce(t.completed_at, t.created_at) AS moved_at, t.id, t.type, t.context,
               e.position, e.debit_account, e.credit_account,
               CASE e.credit_account WHEN $1 THEN e.amount ELSE -e.amount END AS amount
        FROM found t
        CROSS JOIN LATERAL (
            SELECT * FROM entries
            WHERE transaction_id = t.id AND transaction_id >= $5
              AND $1 IN (debit_account, credit_account) OFFSET 0
        ) e
        WHERE coalesce(t.completed_at, t.created_at) >= $2
    )"""

#: Reviewed transactions may complete long after their ID was generated, and have a table of their
#: own.
_FIND_RELEASED: Final = """
    SELECT transaction_id FROM released_transactions
    WHERE from_account = $1 AND completed_at >= $2 AND transaction_id < $3
    UNION
    SELECT transaction_id FROM released_transactions
    WHERE to_account = $1 AND completed_at >= $2 AND transaction_id < $3"""

_BALANCE_BEFORE: Final = f"""{_MOVEMENTS_SINCE}
    SELECT (SELECT balance FROM accounts WHERE id = $1)
           - (SELECT coalesce(sum(amount), 0) FROM moved)::bigint"""

_MOVEMENTS: Final = f"""{_MOVEMENTS_SINCE}
    SELECT moved_at, moved.id, type, other.kind = 'fees' AS is_fee, amount,
           coalesce(context ->> 'merchant_name', other.public_name) AS counterparty,
           context ->> 'memo' AS memo
    FROM moved JOIN accounts other
      ON other.id = CASE credit_account WHEN $1 THEN debit_account ELSE credit_account END
    WHERE moved_at < $6
    ORDER BY moved_at, moved.id, position"""


class WalletActivity(NamedTuple):
    opening_balance: int
    movements: list[Movement]


async def load_activity(
    database: Database, account_id: int, start: datetime, end: datetime
) -> WalletActivity:
    """Load the opening balance and the movements of a period from one snapshot.

    The opening balance is the current balance minus all movements since the start of the period.
    This is exact, and the query is faster for a more recent period.
    """
    first_id = min(ids.first_id_at(start - _ID_TIME_TOLERANCE), MAX_ID)
    async with database.snapshot(timeout_seconds=_QUERY_TIMEOUT_SECONDS) as reader:
        await archived.lock_live(reader)
        await archived.require_live(reader, start, "from_date")
        # An index exists for every part of the query. With outdated statistics of growing tables,
        # PostgreSQL might choose sequential scans.
        await reader.execute(f"SET LOCAL enable_seqscan = off; {USE_GENERIC_PLANS}")
        released = [
            row["transaction_id"]
            for row in await reader.fetch(_FIND_RELEASED, account_id, start, first_id)
        ]
        arguments = (account_id, start, first_id, released, min([first_id, *released]))
        timeout = _QUERY_TIMEOUT_SECONDS
        opening = await reader.fetchval(_BALANCE_BEFORE, *arguments, timeout=timeout)
        rows = await reader.fetch(_MOVEMENTS, *arguments, end, timeout=timeout)
    return WalletActivity(opening, [Movement(*row) for row in rows])


class StatementFile(NamedTuple):
    id: int
    format: FileFormat
    period: Period
    sealed: bytes


async def count_files(tx: asyncpg.Connection, subscriber_id: int) -> int:
    """Count the files of a subscriber.

    The caller must hold the lock taken by `lock_restriction`, so that concurrent requests do not
    exceed the maximum.
    """
    count: int = await tx.fetchval(
        "SELECT count(*) FROM statements WHERE subscriber_id = $1", subscriber_id
    )
    return count


async def add_file(
    tx: Transaction, file: StatementFile, subscriber_id: int, **others: bytes | datetime
) -> None:
    """Insert a file. `others` are the token hash and the times of creation and expiry."""
    await insert_values(
        tx,
        "statements",
        id=file.id,
        subscriber_id=subscriber_id,
        from_date=file.period.first,
        to_date=file.period.last,
        format=file.format,
        file=file.sealed,
        **others,
    )


async def find_file(database: Database, token_hash: bytes, now: datetime) -> StatementFile | None:
    row = await database.fetchrow(
        """SELECT id, format, from_date, to_date, file FROM statements
           WHERE token_hash = $1 AND expires_at > $2""",
        token_hash,
        now,
    )
    if row is None:
        return None
    return StatementFile(
        row["id"], row["format"], Period(row["from_date"], row["to_date"]), row["file"]
    )


async def remove_expired(database: Database, now: datetime) -> bool:
    """Remove one batch of expired files, and return whether there may be more."""
    removed = await database.fetch(
        """DELETE FROM statements WHERE id = ANY (ARRAY(
               SELECT id FROM statements WHERE expires_at <= $1
               ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))
           RETURNING id""",
        now,
        CLEANUP_BATCH_SIZE,
    )
    return len(removed) == CLEANUP_BATCH_SIZE
