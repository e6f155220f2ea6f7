"""Archives months: detaches their tables from the ledger and exports them to files.

A month is archived in steps, each of which is repeated if it was interrupted:

1. The month is compared with its verification digests. Its sums by account are recorded and its
   entries are detached, in one database transaction.
2. Its transactions are detached. Payments lock the two tables in different orders, so one database
   transaction cannot lock both.
3. Both tables, now in the schema `archive`, are exported, and dropped if requested.

Transactions that moved money after the end of the month, for example after a review, are copied to
the first partition and stay in the ledger. So statements and balances for later months find them.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Final, NamedTuple

import asyncpg

from tapgate.core.id_generator import first_id_at
from tapgate.core.vault import Vault
from tapgate.ledger.archive import archive_checks as checks
from tapgate.ledger.archive import archived
from tapgate.ledger.archive.archived import Archive, ArchivedMonth, load_archive
from tapgate.ledger.verification import checkpoints
from tapgate.ledger.verification.verify import read_range
from tapgate.runtime.store import StoreError
from tapgate.runtime.store.partitions import (
    LOCK_TIMEOUT,
    TABLES,
    Partition,
    PartitionedTable,
    attach,
    list_partitions,
)
from tapgate.runtime.store.transaction import Transaction

#: Schema for archived months. Not part of a backup.
ARCHIVE_SCHEMA: Final = "archive"
ENTRIES, TRANSACTIONS = TABLES
MAX_ATTEMPTS: Final = 100
PAUSE_SECONDS: Final = 0.2
_TIMEOUT_SECONDS: Final = 3600.0

_SUM_ENTRIES: Final = """
    SELECT account_id, sum(side.amount) FROM entries
    CROSS JOIN LATERAL (VALUES (debit_account, -entries.amount), (credit_account, entries.amount))
        AS side (account_id, amount)
    WHERE transaction_id = ANY ($1::bigint[]) GROUP BY account_id"""

#: Opens a database transaction on the job's connection.
OpenTransaction = Callable[[], AbstractAsyncContextManager[Transaction]]


class Month(NamedTuple):
    """Ledger month, or several months that share a partition."""

    first_id: int
    end_id: int
    name: str


class _Contents(NamedTuple):
    """What the archive records about a month."""

    transactions: int
    entries: int
    reviewed_entries: int
    sums: Mapping[int, int]
    reviewed_sums: Mapping[int, int]


async def list_months(connection: Any, before: datetime) -> list[Month]:
    """Return the ledger months that end before a time, oldest first."""
    end_id = await archived.get_end_id(connection)
    await checks.require_divided(connection, end_id)
    entries, transactions = [
        [
            Month(part.lower, part.upper, part.name.removeprefix(f"{table.name}_"))
            for part in await list_partitions(connection, table.name)
            if part.lower is not None and part.upper is not None
            if end_id < part.upper <= first_id_at(before)
        ]
        for table in TABLES
    ]
    if entries != transactions:
        raise StoreError("transaction and entry partitions differ. Try again later")
    return transactions


async def archive_month(
    connection: Any,
    vault: Vault,
    month: Month,
    open_transaction: OpenTransaction,
    record: Callable[[Transaction, str], Awaitable[None]],
    actor_id: str,
) -> None:
    """Detach a verified month. `record` adds the audit entry.

    Raises StoreError if the month is not verified, was changed since, or has open transactions.
    """
    await checks.require_closed(connection, month)
    counted = await checks.count_entries(connection, month)
    kept = await checks.list_kept(connection, month)
    contents = await read_contents(connection, vault, month, kept)
    async with open_transaction() as tx:
        await tx.execute("SET LOCAL statement_timeout = 0")
        await checks.lock_unchanged(tx, month, counted)
        await checkpoints.lock_checkpoints(tx)
        await _store_month(tx, vault, month, contents, actor_id)
        await record(tx, month.name)
        await retry_locked(tx, lambda: detach(tx, ENTRIES, month, kept))


async def finish_month(
    connection: Any, month: ArchivedMonth, open_transaction: OpenTransaction
) -> None:
    """Detach a month's transactions after its entries."""
    kept = await checks.list_kept(connection, month)
    async with open_transaction() as tx:
        await tx.execute(
            "UPDATE archived_months SET is_detached = true, files = NULL WHERE end_id = $1",
            month.end_id,
        )
        await retry_locked(tx, lambda: detach(tx, TRANSACTIONS, month, kept))


async def read_contents(connection: Any, vault: Vault, month: Month, kept: list[int]) -> _Contents:
    """Compare the month with its verified ranges, and return what the archive records."""
    stored = await checkpoints.load_stored(connection, vault)
    ranges = [
        verified
        for verified in stored.ranges
        if verified.first_id >= month.first_id and verified.end_id <= month.end_id
    ]
    if not stored.is_authentic:
        raise StoreError("the checkpoints of verification were changed. Run `tapgate verify --all`")
    if not ranges or (ranges[0].first_id, ranges[-1].end_id) != (month.first_id, month.end_id):
        raise StoreError(f"{month.name} is not verified. Run `tapgate verify` first")
    sums: Counter[int] = Counter()
    for expected in ranges:
        found, range_sums = await read_range(connection, expected.first_id, expected.end_id)
        if found != expected:
            raise StoreError(
                f"{month.name} was changed after its verification. Run `tapgate verify --all`"
            )
        sums.update(dict(range_sums))
    rows = await connection.fetch(
        f"SELECT id FROM transactions_{month.name} WHERE held > 0", timeout=_TIMEOUT_SECONDS
    )
    reviewed = [row["id"] for row in rows]
    kept_ids = set(kept)
    archived_reviews = [id_ for id_ in reviewed if id_ not in kept_ids]
    reviewed_sums = await _sum_entries(connection, archived_reviews)
    sums.update(await _sum_entries(connection, reviewed))
    sums.subtract(await _sum_entries(connection, kept))
    reviewed_count, archived_review_count, kept_count = [
        await connection.fetchval(
            "SELECT count(*) FROM entries WHERE transaction_id = ANY ($1::bigint[])", selected
        )
        for selected in (reviewed, archived_reviews, kept)
    ]
    return _Contents(
        sum(verified.transactions for verified in ranges) - len(kept),
        sum(verified.entries for verified in ranges) + reviewed_count - kept_count,
        archived_review_count,
        sums,
        reviewed_sums,
    )


async def _sum_entries(connection: Any, transaction_ids: list[int]) -> dict[int, int]:
    rows = await connection.fetch(_SUM_ENTRIES, transaction_ids, timeout=_TIMEOUT_SECONDS)
    return {account_id: int(amount) for account_id, amount in rows}


async def _store_month(
    tx: Transaction, vault: Vault, month: Month, contents: _Contents, actor_id: str
) -> None:
    archive = await load_archive(tx)
    if not archived.is_authentic(vault, archive):
        raise StoreError("the records of archived months were changed. Run `tapgate verify --all`")
    sums = Counter(archive.sums)
    sums.update(contents.sums)
    row = ArchivedMonth(
        month.first_id,
        month.end_id,
        month.name,
        contents.transactions,
        contents.entries,
        contents.reviewed_entries,
        archived.compute_sums_digest(sums),
        b"",
        tx.now(),
        actor_id,
        is_detached=False,
        files=None,
        dropped_at=None,
    )
    previous = archive.months[-1].mac if archive.months else b""
    row = row._replace(mac=archived.compute_mac(vault, previous, row))
    await tx.execute(
        """INSERT INTO archived_months VALUES
               ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)""",
        *row,
    )
    await _store_sums(tx, sums)
    await _add_verified_sums(tx, vault, contents.reviewed_sums)
    # Old matches are no longer needed, and would contradict the transactions that remain.
    await tx.execute(
        "DELETE FROM cash_matches WHERE transaction_id < $1 OR matched_id < $1", month.end_id
    )


async def _store_sums(tx: Any, sums: Mapping[int, int]) -> None:
    await tx.execute(
        """INSERT INTO archived_sums SELECT * FROM unnest($1::bigint[], $2::numeric[])
           ON CONFLICT (account_id) DO UPDATE SET amount = excluded.amount
           WHERE archived_sums.amount <> excluded.amount""",
        list(sums),
        list(sums.values()),
        timeout=_TIMEOUT_SECONDS,
    )


async def _add_verified_sums(tx: Any, vault: Vault, change: Mapping[int, int]) -> None:
    """Add to the verified entry sums, which exclude reviewed transactions."""
    end_id = await tx.fetchval("SELECT end_id FROM verified_sums_seal")
    sums = await checkpoints.load_sums(tx, vault, end_id)
    if sums is None:
        raise StoreError("the checkpoints of verification were changed. Run `tapgate verify --all`")
    total = Counter(sums)
    total.update(change)
    await checkpoints.store_sums(tx, vault, end_id, total)


async def retry_locked(tx: Any, change: Callable[[], Awaitable[None]]) -> None:
    """Run a change that locks a table against payments, and retry if the lock takes too long."""
    for _ in range(MAX_ATTEMPTS):
        try:
            async with tx.transaction():  # a savepoint
                await tx.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
                await change()
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            await asyncio.sleep(PAUSE_SECONDS)
        else:
            return
    raise StoreError("other sessions use the tables all the time. Run the command again later")


async def detach(
    tx: Any, table: PartitionedTable, month: Month | ArchivedMonth, kept: list[int]
) -> None:
    """Move a partition to the archive schema. The first partition takes over its IDs."""
    name, first = f"{table.name}_{month.name}", f"{table.name}_initial"
    await tx.execute(f"CREATE SCHEMA IF NOT EXISTS {ARCHIVE_SCHEMA}")
    await tx.execute(f"ALTER TABLE {table.name} DETACH PARTITION {name}")
    await tx.execute(f"ALTER TABLE {table.name} DETACH PARTITION {first}")
    if table is TRANSACTIONS:
        kept = [*kept, *await checks.list_late(tx, month)]
    await tx.execute(
        f"""INSERT INTO {first} SELECT * FROM {name}
            WHERE {table.id_column} = ANY ($1::bigint[])""",
        kept,
    )
    await tx.execute(f"ALTER TABLE {name} SET SCHEMA {ARCHIVE_SCHEMA}")
    await attach(tx, table, Partition(first, None, month.end_id))


async def restore_month(
    connection: Any,
    vault: Vault,
    archive: Archive,
    open_transaction: OpenTransaction,
    record: Callable[[Transaction, str], Awaitable[None]],
) -> None:
    """Reattach the last archived month's tables. They must be in the archive schema.

    The archiving steps run in reverse order.
    """
    month = archive.months[-1]
    lower = archive.months[-2].end_id if len(archive.months) > 1 else month.first_id
    for table in TABLES:
        await _add_bounds(connection, table, month)
    if month.is_detached:
        async with open_transaction() as tx:
            await tx.execute(
                "UPDATE archived_months SET is_detached = false WHERE end_id = $1", month.end_id
            )
            await retry_locked(tx, lambda: _attach(tx, TRANSACTIONS, month, lower))
    sums, reviewed_sums = await _sum_archived(connection, month)
    async with open_transaction() as tx:
        await checkpoints.lock_checkpoints(tx)
        await tx.execute("SET LOCAL statement_timeout = 0")
        rest = Counter(archive.sums)
        rest.subtract(sums)
        await tx.execute("DELETE FROM archived_months WHERE end_id = $1", month.end_id)
        await _store_sums(tx, rest)
        await tx.execute("DELETE FROM archived_sums WHERE amount = 0")
        await _add_verified_sums(
            tx, vault, {account: -amount for account, amount in reviewed_sums.items()}
        )
        if not archived.is_authentic(vault, await load_archive(tx)):
            raise StoreError(f"{month.name} is not the month that was archived")
        await record(tx, month.name)
        await retry_locked(tx, lambda: _attach(tx, ENTRIES, month, lower))


async def _add_bounds(connection: Any, table: PartitionedTable, month: ArchivedMonth) -> None:
    """Add a check, so that attaching does not scan the table while payments wait."""
    column = table.id_column
    await connection.execute(
        f"""ALTER TABLE IF EXISTS {ARCHIVE_SCHEMA}.{table.name}_{month.name}
                DROP CONSTRAINT IF EXISTS bounds, ADD CONSTRAINT bounds
                CHECK ({column} >= {month.first_id} AND {column} < {month.end_id})""",
        timeout=_TIMEOUT_SECONDS,
    )


async def _sum_archived(
    connection: Any, month: ArchivedMonth
) -> tuple[dict[int, int], dict[int, int]]:
    """Return a detached month's sums: all archived entries, and reviewed entries only."""
    archived_entries = f"""
        SELECT * FROM {ARCHIVE_SCHEMA}.entries_{month.name} WHERE transaction_id NOT IN (
            SELECT transaction_id FROM entries_initial
            WHERE transaction_id >= {month.first_id} AND transaction_id < {month.end_id})"""
    reviewed = f"SELECT id FROM transactions_{month.name} WHERE held > 0"
    sums = []
    for condition in ("true", f"transaction_id IN ({reviewed})"):
        rows = await connection.fetch(
            f"""SELECT account_id, sum(side.amount) FROM ({archived_entries}) AS archived
                CROSS JOIN LATERAL (VALUES (debit_account, -archived.amount),
                                           (credit_account, archived.amount))
                    AS side (account_id, amount)
                WHERE {condition} GROUP BY account_id""",
            timeout=_TIMEOUT_SECONDS,
        )
        sums.append({account_id: int(amount) for account_id, amount in rows})
    return sums[0], sums[1]


async def _attach(tx: Any, table: PartitionedTable, month: ArchivedMonth, lower: int) -> None:
    """Reverse `_detach`. The rows that stayed in the ledger may have changed since."""
    name, first = f"{table.name}_{month.name}", f"{table.name}_initial"
    column = table.id_column
    main = await tx.fetchval("SELECT quote_ident(current_schema())")
    await tx.execute(f"ALTER TABLE {ARCHIVE_SCHEMA}.{name} SET SCHEMA {main}")
    await tx.execute(f"ALTER TABLE {table.name} DETACH PARTITION {first}")
    kept = f"{column} >= {month.first_id} AND {column} < {month.end_id}"
    await tx.execute(
        f"""DELETE FROM {name} WHERE {column} IN (SELECT {column} FROM {first} WHERE {kept});
            INSERT INTO {name} SELECT * FROM {first} WHERE {kept};
            DELETE FROM {first} WHERE {kept}"""
    )
    await attach(tx, table, Partition(first, None, lower))
    await attach(tx, table, Partition(name, month.first_id, month.end_id))
    await tx.execute(f"ALTER TABLE {name} DROP CONSTRAINT IF EXISTS bounds")
