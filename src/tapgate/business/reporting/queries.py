"""SQL queries for the overview. They never read transactions or entries, which are too numerous."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from tapgate.core.id_generator import first_id_at
from tapgate.runtime.store.database import Database
from tapgate_client.schemas.chat import UnavailableService
from tapgate_client.schemas.reporting import ServiceDemand
from tapgate_client.schemas.transactions import TransactionType

#: On a large platform, counting all accounts and cards may exceed the usual query timeout.
_QUERY_TIMEOUT_SECONDS: Final = 60.0
#: Counting stops here: a larger backlog of unsealed entries indicates a fault in any case.
_MAX_UNSEALED_COUNT: Final = 100_000


class Rollup(NamedTuple):
    bucket: int  # 1-based
    type: TransactionType
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


async def count_unavailable_services(
    database: Database, start: datetime, end: datetime
) -> list[ServiceDemand]:
    """Count the chat turns that asked for a service that is not offered, the most wanted first."""
    rows = await database.fetch(
        """SELECT command, count(*) AS requests, count(DISTINCT subscriber_id) AS customers
           FROM chat_turns WHERE command IN ('airtime', 'bills', 'loans') AND id >= $1 AND id <= $2
           GROUP BY command ORDER BY requests DESC, command""",
        first_id_at(start),
        first_id_at(end),
    )
    return [
        ServiceDemand(
            service=UnavailableService(row["command"]),
            requests=row["requests"],
            customers=row["customers"],
        )
        for row in rows
    ]


async def get_compaction_count(tx: Any) -> int:
    return int(await tx.fetchval("SELECT times FROM figures_folded"))


async def list_rollups(
    tx: Any, starts: Sequence[datetime], end: datetime, *, are_compacted: bool
) -> list[Rollup]:
    """Return the rollups before `end`, added up by the buckets that begin at `starts`."""
    condition = "slot < 0" if are_compacted else "slot >= 0"
    rows = await tx.fetch(
        f"""SELECT width_bucket(quarter, $1::timestamptz[]), type, outcome, failure_code,
                   sum(count)::bigint, sum(amount), sum(fees)
            FROM figures WHERE {condition} AND quarter >= $2 AND quarter < $3
            GROUP BY 1, 2, 3, 4""",
        starts,
        starts[0],
        end,
    )
    return [
        Rollup(bucket, type_, outcome, code, transactions, int(amount), int(fees))
        for bucket, type_, outcome, code, transactions, amount, fees in rows
    ]


async def load_snapshot(
    database: Database, now: datetime
) -> tuple[list[AccountTotals], dict[str, int]]:
    """Return account totals by kind and status, and card counts by public status.

    Both come from one database snapshot. Expired cards count as expired unless they are lost.
    """
    async with database.snapshot(timeout_seconds=_QUERY_TIMEOUT_SECONDS) as connection:
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
    totals = [
        AccountTotals(kind, status, count, int(balance), int(held))
        for kind, status, count, balance, held in accounts
    ]
    return totals, {row["status"]: row["count"] for row in cards}


async def count_unresolved_alerts(database: Database) -> dict[tuple[str, str], int]:
    """Count open and investigating alerts by (status, severity)."""
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
                        LIMIT {_MAX_UNSEALED_COUNT}) AS unsealed)
            FROM audit_head head LEFT JOIN audit_entries last ON last.sequence = head.sequence"""
    )
    return AuditSeal(*row)
