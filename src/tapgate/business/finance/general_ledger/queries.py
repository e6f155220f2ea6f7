"""SQL queries for the general ledger.

Accounts of people and companies store their balances, so their entries are read only for a time in
the past. Platform accounts store no balance: it is summed from all entries and archived months.

An entry belongs to the time at which its transaction completed. Transactions are selected by the
time in their IDs, except for those that completed after a review, which have a table of their own.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from tapgate.business.finance.general_ledger.model import KindTotals
from tapgate.business.payments.transactions.queries import ID_TIME_TOLERANCE, get_first_id
from tapgate.ledger.archive import archived
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.id_ranges import add_range
from tapgate.runtime.store.pipeline import send_ahead
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.schemas.general_ledger import GlCode

#: On a large platform, summing all entries may exceed the usual query timeout.
_QUERY_TIMEOUT_SECONDS: Final = 300.0
#: Sums per account would spill to disk with PostgreSQL's default.
_WORK_MEM: Final = "64MB"

_SUM_PLATFORM_ENTRIES: Final = """
    SELECT account_id, sum(amount) FROM (
        SELECT debit_account AS account_id, -amount AS amount FROM entries
        WHERE debit_account = ANY ($1::bigint[])
        UNION ALL
        SELECT credit_account, amount FROM entries WHERE credit_account = ANY ($1::bigint[])
        UNION ALL
        SELECT account_id, amount FROM archived_sums WHERE account_id = ANY ($1::bigint[])
    ) AS sides GROUP BY account_id"""
_SUM_LATER_ENTRIES: Final = """
    WITH later AS (
        SELECT id FROM transactions WHERE id >= $2 AND id < $3 AND completed_at >= $1
        UNION
        SELECT transaction_id FROM released_transactions
        WHERE completed_at >= $1 AND transaction_id < $3
    ), moved AS (
        SELECT debit_account, credit_account, amount FROM entries WHERE transaction_id >= $3
        UNION ALL
        SELECT debit_account, credit_account, amount
        FROM later JOIN entries ON transaction_id = later.id
    ), sides AS (
        SELECT account_id, sum(side.amount) AS amount
        FROM moved CROSS JOIN LATERAL (VALUES (debit_account, -moved.amount),
                                              (credit_account, moved.amount))
            AS side (account_id, amount)
        GROUP BY account_id)
    SELECT kind, sum(sides.amount) AS amount
    FROM sides JOIN accounts ON accounts.id = sides.account_id GROUP BY kind"""
_LIST_PERIOD: Final = """
    WITH released AS MATERIALIZED (
        SELECT transaction_id AS id FROM released_transactions
        WHERE completed_at >= $1 AND completed_at < $2
    )
    (SELECT id FROM transactions
     WHERE id > $3 AND id < $4 AND completed_at >= $1 AND completed_at < $2
     ORDER BY id LIMIT $6)
    UNION
    (SELECT id FROM released WHERE id > $5 ORDER BY id LIMIT $6)
    ORDER BY id LIMIT $6"""


async def list_codes(reader: Any) -> list[GlCode]:
    rows = await reader.fetch("SELECT kind, gl_code, name FROM gl_codes ORDER BY gl_code")
    return [GlCode(**row) for row in rows]


async def lock_codes(tx: Transaction) -> None:
    """Lock the table against concurrent changes, but not against reads."""
    await tx.execute("LOCK TABLE gl_codes IN SHARE ROW EXCLUSIVE MODE")


async def update_codes(tx: Transaction, codes: Sequence[GlCode]) -> None:
    await tx.execute(
        """UPDATE gl_codes SET gl_code = new.gl_code, name = new.name
           FROM unnest($1::text[], $2::text[], $3::text[]) AS new (kind, gl_code, name)
           WHERE gl_codes.kind = new.kind""",
        [code.kind for code in codes],
        [code.gl_code for code in codes],
        [code.name for code in codes],
    )


async def load_totals(
    database: Database, end: datetime | None
) -> tuple[list[GlCode], dict[str, KindTotals]]:
    """Return the GL codes and the totals by kind before `end`, or now, from one snapshot."""
    async with database.snapshot(timeout_seconds=_QUERY_TIMEOUT_SECONDS) as connection:
        archived.lock_live(connection)
        if end is not None:
            await archived.require_live(connection, end, "as_of", is_end=True)
        send_ahead(connection, f"SET LOCAL work_mem = '{_WORK_MEM}'")
        codes = await list_codes(connection)
        totals = await _load_current_totals(connection)
        if end is not None:
            for kind, amount in await _load_later_amounts(connection, end):
                total = totals[kind]
                totals[kind] = total._replace(balance=total.balance - int(amount))
    return codes, totals


async def _load_current_totals(connection: Any) -> dict[str, KindTotals]:
    rows = await connection.fetch(
        "SELECT kind, count(*), sum(balance) FROM accounts WHERE checked GROUP BY kind",
        timeout=_QUERY_TIMEOUT_SECONDS,
    )
    totals = {kind: KindTotals(count, int(balance)) for kind, count, balance in rows}
    platform_accounts = {
        row["id"]: row["kind"]
        for row in await connection.fetch("SELECT id, kind FROM accounts WHERE owner_id IS NULL")
    }
    balances = await connection.fetch(
        _SUM_PLATFORM_ENTRIES, list(platform_accounts), timeout=_QUERY_TIMEOUT_SECONDS
    )
    by_account = {account_id: int(balance) for account_id, balance in balances}
    for account_id, kind in platform_accounts.items():
        totals[kind] = KindTotals(1, by_account.get(account_id, 0), account_id)
    return totals


async def _load_later_amounts(connection: Any, end: datetime) -> Any:
    return await connection.fetch(
        _SUM_LATER_ENTRIES,
        end,
        get_first_id(end - ID_TIME_TOLERANCE),
        get_first_id(end + ID_TIME_TOLERANCE),
        timeout=_QUERY_TIMEOUT_SECONDS,
    )


async def list_transaction_ids(
    reader: Any, start: datetime, end: datetime, after_id: int, limit: int
) -> list[int]:
    """Return the IDs of transactions that completed in a period, in ascending order."""
    rows = await reader.fetch(
        _LIST_PERIOD,
        start,
        end,
        max(after_id, get_first_id(start - ID_TIME_TOLERANCE) - 1),
        get_first_id(end + ID_TIME_TOLERANCE),
        after_id,
        limit,
    )
    return [row["id"] for row in rows]


async def list_entries(database: Database, transaction_ids: Sequence[int]) -> list[Any]:
    """Return transaction entries, with the kinds of both accounts, in posting order."""
    if not transaction_ids:
        return []
    rows: list[Any] = await database.fetch(
        """SELECT entry.transaction_id, entry.position, entry.amount,
                  entry.debit_account, debit.kind AS debit_kind,
                  entry.credit_account, credit.kind AS credit_kind, t.type, t.original_id,
                  t.completed_at,
                  coalesce(t.context ->> 'transaction_ref', t.request_id, t.partner_reference, '')
                      AS reference
           FROM entries entry
           JOIN transactions t ON t.id = entry.transaction_id
           JOIN accounts debit ON debit.id = entry.debit_account
           JOIN accounts credit ON credit.id = entry.credit_account
           WHERE entry.transaction_id = ANY ($1::bigint[])
             AND entry.transaction_id >= $2 AND entry.transaction_id <= $3
             AND t.id >= $2 AND t.id <= $3
           ORDER BY entry.transaction_id, entry.position""",
        *add_range(transaction_ids),
    )
    return rows
