"""Verification that balances, transactions, entries and rollups agree with each other.

Transactions and entries are read by ID range, each range in a short database snapshot, by one or
several connections. The newest ones and the current state follow at the end. One snapshot of
everything would be held for many minutes, in which PostgreSQL could not remove old row versions.
Every payment to a busy merchant adds an account row version, and later payments would read them
all.

A verification can continue where an earlier one ended (`checkpoints.py`). Archived months are not
read: their sums are part of the balances (`archived.py`).
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

import asyncpg
import msgspec

from tapgate.core.id_generator import first_id_at, get_time
from tapgate.ledger.archive.archived import Archive, load_archive
from tapgate.ledger.verification.invariants import (
    BALANCES,
    BOOK_TRANSFERS,
    CARD_SPENDING,
    IN_TRANSIT,
    INVARIANTS,
    PAYOUTS,
    RANGE_INVARIANTS,
    STATE_INVARIANTS,
    TOTALS,
    USAGE,
)
from tapgate.runtime.store.partitions import get_month_start, list_partitions
from tapgate_client import ids

_MAX_EXAMPLES: Final = 5
_QUERY_TIMEOUT_SECONDS: Final = 3600
#: The queries aggregate over entire tables and would spill to disk with PostgreSQL's default.
_WORK_MEM: Final = "128MB"
#: Transactions per range.
RANGE_SIZE: Final = 50_000
#: Transactions that are newer belong to the current state: another process may still commit one
#: with a lower ID.
MIN_AGE: Final = timedelta(minutes=10)
_ID_TIME_TOLERANCE: Final = timedelta(hours=1)
_MAX_ID: Final = 2**63 - 1
#: Started first if several connections share the invariants about the current state.
_SLOW_INVARIANTS: Final = {USAGE, TOTALS, BALANCES}

#: Facts that never change. A transaction that was under review is left out, because its entries are
#: written when it is released.
_SELECT_REVIEWED: Final = "SELECT id FROM transactions WHERE id >= $1 AND id < $2 AND held > 0"
_SELECT_ENTRIES: Final = """
    SELECT transaction_id, position, debit_account, credit_account, amount FROM entries
    WHERE transaction_id >= $1 AND transaction_id < $2 AND transaction_id <> ALL ($3::bigint[])
    ORDER BY transaction_id, position"""
_SELECT_TRANSACTIONS: Final = """
    SELECT id, type, amount, fee_amount, currency, coalesce(from_account, 0),
           coalesce(to_account, 0), extract(epoch FROM created_at)
    FROM transactions WHERE id >= $1 AND id < $2 AND held = 0 ORDER BY id"""
#: A sum as text costs less to decode than a decimal number.
_SUM_ENTRIES: Final = """
    SELECT account_id, sum(amount)::text FROM (
        SELECT debit_account AS account_id, -amount AS amount, transaction_id FROM entries
        WHERE transaction_id >= $1 AND transaction_id < $2
        UNION ALL
        SELECT credit_account, amount, transaction_id FROM entries
        WHERE transaction_id >= $1 AND transaction_id < $2
    ) AS sides WHERE transaction_id <> ALL ($3::bigint[]) GROUP BY account_id"""
_COUNT_REST: Final = """
    SELECT (SELECT count(*) FROM transactions WHERE id >= $1),
           (SELECT count(*) FROM entries WHERE transaction_id >= $1)
           + (SELECT count(*) FROM entries WHERE transaction_id < $1 AND transaction_id IN (
                  SELECT id FROM transactions WHERE held > 0 AND id < $1)),
           (SELECT count(*) FROM accounts)"""


class Finding(msgspec.Struct, frozen=True):
    invariant: str
    broken: int
    examples: list[str]


class Verification(msgspec.Struct, frozen=True):
    transactions: int
    entries: int
    accounts: int
    findings: list[Finding]

    @property
    def is_valid(self) -> bool:
        return all(finding.broken == 0 for finding in self.findings)


class VerifiedRange(NamedTuple):
    """ID range whose invariants hold, with what must no longer change."""

    first_id: int
    end_id: int
    transactions: int
    entries: int
    digest: bytes


class Progress:
    """What was verified so far: ranges without a gap from the first ID to `end_id`."""

    def __init__(self, archive: Archive | None = None) -> None:
        archive = archive or Archive([], {})
        self.end_id = archive.end_id
        self.transactions = sum(month.transactions for month in archive.months)
        self.entries = sum(month.entries for month in archive.months)
        #: Account to the sum of its entries.
        self.sums: Counter[int] = Counter(archive.sums)
        self.ranges: list[VerifiedRange] = []
        #: Whether an earlier verification has read the transactions before `end_id`.
        self.is_resumed = False
        #: Stored range that spans months to the ranges that replace it.
        self.parts: dict[VerifiedRange, list[VerifiedRange]] = {}
        #: The archive's end and the sums' seal when the verification started.
        self.basis: tuple[int, bytes | None] = (archive.end_id, None)
        self.findings: dict[str, Finding] = {}

    def add_range(self, verified: VerifiedRange, sums: Iterable[tuple[int, int]]) -> None:
        self.transactions += verified.transactions
        self.entries += verified.entries
        for account_id, amount in sums:
            self.sums[account_id] += amount
        self.ranges.append(verified)

    def add_finding(self, finding: Finding) -> None:
        known = self.findings.get(finding.invariant, Finding(finding.invariant, 0, []))
        self.findings[finding.invariant] = Finding(
            finding.invariant,
            known.broken + finding.broken,
            [*known.examples, *finding.examples][:_MAX_EXAMPLES],
        )


async def verify(
    connection: Any,
    *,
    progress: Progress | None = None,
    since: int = 0,
    bounds: Sequence[int] = (),
    helpers: Sequence[Any] = (),
) -> Verification:
    """Verify the ledger from `progress` on, or everything.

    Limits and overview totals are verified for the time since the ID `since`. `bounds` are ends of
    ranges that must be kept, so that their digests can be compared. `helpers` are connections that
    verify other ranges at the same time.
    """
    archive = await load_archive(connection)
    progress = progress or Progress(archive)
    if archive.months and not progress.is_resumed:
        await _verify_kept(connection, progress, archive)
    end_id = await _find_end(connection, progress.end_id)
    bounds = await _list_bounds(connection, progress.end_id, end_id, bounds)
    readers = (connection, *helpers)
    await _share_work(
        readers, (partial(_verify_range, progress, first, end) for first, end in pairwise(bounds))
    )
    progress.end_id = end_id
    progress.ranges.sort()
    arguments: dict[str, tuple[Any, ...]] = dict.fromkeys(RANGE_INVARIANTS, (end_id, _MAX_ID)) | {
        invariant: _get_arguments(invariant, since, progress, archive.end_id)
        for invariant in STATE_INVARIANTS
    }
    arguments[PAYOUTS] = (max(since, archive.end_id),)
    arguments[BOOK_TRANSFERS] = (archive.end_id, max(since, archive.end_id))
    invariants = {**RANGE_INVARIANTS, **STATE_INVARIANTS}
    await _share_work(
        readers,
        (
            partial(_verify_invariant, progress, name, invariants[name], *arguments[name])
            for name in sorted(invariants, key=_SLOW_INVARIANTS.__contains__, reverse=True)
        ),
    )
    (counts,) = await _fetch(connection, _COUNT_REST, end_id)
    return Verification(
        progress.transactions + counts[0],
        progress.entries + counts[1],
        counts[2],
        [progress.findings[invariant] for invariant in INVARIANTS],
    )


async def _share_work(
    readers: Sequence[Any], work: Iterable[Callable[[Any], Awaitable[None]]]
) -> None:
    """Call functions with connections, each connection with one function at a time."""
    queue = iter(work)

    async def run(reader: Any) -> None:
        for function in queue:
            await function(reader)

    await asyncio.gather(*map(run, readers))


async def _verify_kept(connection: Any, progress: Progress, archive: Archive) -> None:
    """Verify archived months' transactions that are still in the ledger.

    If archiving a month was interrupted, only its entries are detached, and its transactions
    contradict them until `tapgate archive` continues.
    """
    kept, sums = await read_range(connection, 0, archive.end_id)
    if archive.is_detached:
        for invariant, sql in RANGE_INVARIANTS.items():
            await _verify_invariant(progress, invariant, sql, 0, archive.end_id, connection)
        progress.transactions += kept.transactions
    progress.entries += kept.entries
    progress.sums.update(dict(sums))


def _get_arguments(
    invariant: str, since: int, progress: Progress, archive_end: int
) -> tuple[Any, ...]:
    if invariant in (BALANCES, IN_TRANSIT):
        sums = progress.sums
        return progress.end_id, list(sums), list(map(str, sums.values()))
    moment, archived_until = get_time(since), get_time(archive_end)
    if invariant in (USAGE, CARD_SPENDING):
        # Usage is compared for whole months of the platform's time zone.
        first_day = (moment - timedelta(days=1)).date().replace(day=1) if since else date.min
        if archive_end:
            first_day = max(first_day, get_month_start(archived_until, 1).date())
        if not since:
            return 0, first_day
        start = datetime.combine(first_day, datetime.min.time(), moment.tzinfo)
        return first_id_at(start - timedelta(days=2)), first_day
    if invariant == TOTALS:
        if not since:
            return 0, archived_until if archive_end else datetime.min.replace(tzinfo=moment.tzinfo)
        bucket = moment - (moment - datetime(2000, 1, 1, tzinfo=moment.tzinfo)) % timedelta(
            minutes=15
        )
        return first_id_at(bucket - _ID_TIME_TOLERANCE), bucket
    return ()


async def _find_end(connection: Any, start: int) -> int:
    """Return the end of the ranges, before the newest transactions.

    If a node's clock was ahead, transactions with lower IDs than its newest will follow.
    """
    ((newest, now),) = await _fetch(
        connection, "SELECT max(id), clock_timestamp() FROM transactions"
    )
    if newest is None:
        return start
    return max(start, first_id_at(min(get_time(newest), now) - MIN_AGE))


async def _list_bounds(connection: Any, start: int, end: int, fixed: Sequence[int]) -> list[int]:
    """Return the range bounds from `start` to `end`.

    A new range has at most RANGE_SIZE transactions, all in the same month.
    """
    bounds = [start, *(bound for bound in fixed if start < bound <= end)]
    for month_end in [*await list_months(connection, bounds[-1], end), end]:
        while bounds[-1] < month_end:
            rows = await _fetch(
                connection,
                f"""SELECT id FROM transactions WHERE id >= $1 AND id < $2
                    ORDER BY id OFFSET {RANGE_SIZE} LIMIT 1""",
                bounds[-1],
                month_end,
            )
            bounds.append(rows[0][0] if rows else month_end)
    return bounds


async def list_months(connection: Any, start: int, end: int) -> list[int]:
    """Return each calendar month's first ID (UTC) between two IDs.

    These are the partition bounds. Months before the first partition and transaction are left out.
    """
    ((oldest,),) = await _fetch(connection, "SELECT min(id) FROM transactions")
    partitions = await list_partitions(connection, "transactions")
    known = [bound for bound in (oldest, *(part.upper for part in partitions)) if bound is not None]
    month = get_month_start(get_time(max(start, min(known, default=end))))
    months = []
    while (first_id := first_id_at(month)) < end:
        if first_id > start:
            months.append(first_id)
        month = get_month_start(month, 1)
    return months


async def split_range(connection: Any, verified: VerifiedRange) -> list[VerifiedRange]:
    """Divide a range at month ends, if it still has the same digest."""
    first, last = get_time(verified.first_id), get_time(verified.end_id - 1)
    if get_month_start(first) == get_month_start(last):
        return [verified]
    months = await list_months(connection, verified.first_id, verified.end_id)
    if not months:
        return [verified]
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        whole, _ = await read_range(connection, verified.first_id, verified.end_id)
        parts = [
            (await read_range(connection, first, end))[0]
            for first, end in pairwise([verified.first_id, *months, verified.end_id])
        ]
    return parts if whole == verified else [verified]


async def _verify_invariant(progress: Progress, invariant: str, sql: str, *arguments: Any) -> None:
    """Verify an invariant. The last argument is the connection, the others are query arguments."""
    *values, connection = arguments
    progress.add_finding(await _check(connection, invariant, sql, *values))


async def _verify_range(progress: Progress, first: int, end: int, connection: Any) -> None:
    for invariant, sql in RANGE_INVARIANTS.items():
        await _verify_invariant(progress, invariant, sql, first, end, connection)
    progress.add_range(*await read_range(connection, first, end))


async def read_range(
    connection: Any, first: int, end: int
) -> tuple[VerifiedRange, list[tuple[int, int]]]:
    """Return a range's digest and its entry sums by account.

    Transactions that were ever under review are counted, but not part of the digest and the sums.
    """
    digest = hashlib.sha256()
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        await connection.execute(f"SET LOCAL work_mem = '{_WORK_MEM}'")
        reviewed = [row["id"] for row in await connection.fetch(_SELECT_REVIEWED, first, end)]
        entries = await _add_rows(connection, digest, _SELECT_ENTRIES, first, end, reviewed)
        digest.update(b"|")
        transactions = await _add_rows(connection, digest, _SELECT_TRANSACTIONS, first, end)
        sums = await connection.fetch(_SUM_ENTRIES, first, end, reviewed)
    transactions += len(reviewed)
    return VerifiedRange(first, end, transactions, entries, digest.digest()), [
        (account_id, int(amount)) for account_id, amount in sums
    ]


async def _add_rows(connection: asyncpg.Connection, digest: Any, sql: str, *arguments: Any) -> int:
    """Add rows to a digest, with spaces between columns and semicolons between rows.

    Returns the number of rows. COPY costs a third of aggregating them to one text.
    """
    separator = b""

    async def add(data: bytes) -> None:
        nonlocal separator
        digest.update(separator + data[:-1].replace(b"\n", b";"))
        separator = b";"

    status = await connection.copy_from_query(
        sql, *arguments, output=add, format="text", delimiter=" ", timeout=_QUERY_TIMEOUT_SECONDS
    )
    return int(status.rpartition(" ")[2])


async def _fetch(connection: asyncpg.Connection, sql: str, *arguments: Any) -> list[asyncpg.Record]:
    """Run a query in a separate database transaction, and therefore snapshot."""
    async with connection.transaction(readonly=True):
        await connection.execute(f"SET LOCAL work_mem = '{_WORK_MEM}'")
        rows: list[asyncpg.Record] = await connection.fetch(
            sql, *arguments, timeout=_QUERY_TIMEOUT_SECONDS
        )
        return rows


async def _check(
    connection: asyncpg.Connection, invariant: str, sql: str, *arguments: Any
) -> Finding:
    rows = await _fetch(
        connection,
        f"""SELECT *, count(*) OVER () FROM ({sql}) AS contradictions (prefix, number, description)
            LIMIT {_MAX_EXAMPLES}""",
        *arguments,
    )
    return Finding(
        invariant,
        broken=rows[0][3] if rows else 0,
        examples=[
            description if number is None else f"{ids.encode(prefix, number)}: {description}"
            for prefix, number, description, _ in rows
        ],
    )
