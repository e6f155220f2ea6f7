"""The SQL of the overview. None of it looks at transactions or entries, of which there are many."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from tapgate.store.database import Database

#: Counting all accounts and cards of a large platform may take longer than a request should.
_QUERY_TIMEOUT_SECONDS: Final = 60.0
#: More that wait to be sealed are not counted: something is wrong then in any case.
_MAX_UNSEALED_COUNT: Final = 100_000


class Rollup(NamedTuple):
    bucket: int  # from 1 on
    type: str
    outcome: str
    failure_code: str | None
    transactions: int
    amount: int
    fees: int


class AccountTotals(NamedTuple):
    kind: str
    status: str
    accounts: int
    balance: int
    held: int


class AuditSeal(NamedTuple):
    sequence: int
    until: datetime | None
    unsealed: int


async def get_compaction_count(tx: Any) -> int:
    return int(await tx.fetchval("SELECT times FROM figures_folded"))


async def list_compacted(tx: Any, starts: Sequence[datetime]) -> list[Rollup]:
    return await _list_rollups(tx, "slot < 0", starts)


async def list_uncompacted(tx: Any, starts: Sequence[datetime]) -> list[Rollup]:
    return await _list_rollups(tx, "slot >= 0", starts)


async def _list_rollups(tx: Any, which: str, starts: Sequence[datetime]) -> list[Rollup]:
    rows = await tx.fetch(
        f"""SELECT width_bucket(quarter, $1::timestamptz[]), type, outcome, failure_code,
                   sum(count)::bigint, sum(amount), sum(fees)
            FROM figures WHERE {which} AND quarter >= $2 GROUP BY 1, 2, 3, 4""",
        starts,
        starts[0],
    )
    return [
        Rollup(bucket, type_, outcome, code, transactions, int(amount), int(fees))
        for bucket, type_, outcome, code, transactions, amount, fees in rows
    ]


async def load_snapshot(
    database: Database, now: datetime
) -> tuple[list[AccountTotals], dict[str, int]]:
    """The sums of all accounts by kind and state, and the cards by the state that they are listed
    with; of one snapshot."""
    async with (
        database.connection() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        accounts = await connection.fetch(
            """SELECT kind, status, count(*), sum(balance), sum(held) FROM accounts
               WHERE checked GROUP BY kind, status""",
            timeout=_QUERY_TIMEOUT_SECONDS,
        )
        cards = await connection.fetch(
            """SELECT CASE WHEN status <> 'LOST' AND expires_at <= $1 THEN 'EXPIRED'
                           ELSE status END AS status, count(*) FROM cards GROUP BY 1""",
            now,
            timeout=_QUERY_TIMEOUT_SECONDS,
        )
    sums = [
        AccountTotals(kind, status, number, int(balance), int(held))
        for kind, status, number, balance, held in accounts
    ]
    return sums, {row["status"]: row["count"] for row in cards}


async def count_unresolved_alerts(database: Database) -> dict[tuple[str, str], int]:
    """By status and severity."""
    rows = await database.fetch(
        """SELECT status, severity, count(*) FROM alerts WHERE status IN ('open', 'investigating')
           GROUP BY status, severity"""
    )
    return {(row["status"], row["severity"]): row["count"] for row in rows}


async def get_audit_seal(database: Database) -> AuditSeal:
    row: Any = await database.fetchrow(
        f"""SELECT head.sequence, last.occurred_at,
                   (SELECT count(*) FROM (
                        SELECT FROM audit_entries WHERE hash IS NULL AND sequence > head.sequence
                        LIMIT {_MAX_UNSEALED_COUNT}) AS waiting)
            FROM audit_head head LEFT JOIN audit_entries last ON last.sequence = head.sequence"""
    )
    return AuditSeal(*row)
