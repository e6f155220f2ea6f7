"""A large transaction history, and the number of rows that a query reads from it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tapgate.core.id_generator import first_id_at
from tapgate.runtime.store.database import Database

TRANSACTION_COUNT = 200_000
ACCOUNT_COUNT = 2_000
#: Payer or payee of half of the transactions.
BUSY_ACCOUNT_ID = 1
NOW = datetime(2026, 6, 1, tzinfo=UTC)


async def insert_transactions(database: Database, *, payee_count: int = 1997) -> None:
    """Insert transactions over one year, with one in a hundred subscribers restricted.

    The tables are vacuumed, as autovacuum would do, because the query plans depend on it.
    """
    async with database.transaction() as tx:
        await tx.execute(
            """INSERT INTO accounts (id, kind, owner_id, holder_name, public_name, currency,
                                     kyc_level, checked)
               SELECT n, 'wallet', n + 1000000, 'Aminata Kamara', 'Aminata K.', 'SLE', 1, true
               FROM generate_series(1, $1) n""",
            ACCOUNT_COUNT,
            timeout=60,
        )
        await tx.execute(
            """INSERT INTO subscribers (id, account_id, phone_number, first_name, last_name,
                                        restricted, created_at, updated_at)
               SELECT n + 1000000, n, '+232' || n, 'Aminata', 'Kamara', n % 100 = 99, now(), now()
               FROM generate_series(1, $1) n""",
            ACCOUNT_COUNT,
            timeout=60,
        )
        await tx.execute(
            """INSERT INTO transactions
                   (id, type, status, channel, amount, fee_amount, currency, from_account,
                    to_account, card_serial, failure_code, created_at, completed_at)
               SELECT $2::bigint + n * (($3::bigint - $2::bigint) / $1),
                      CASE WHEN n % 5000 = 0 THEN 'partner_deposit' ELSE 'transfer_p2p' END,
                      CASE WHEN n % 5000 = 1 THEN 'failed' ELSE 'completed' END, 'api', 100, 1,
                      'SLE', CASE WHEN n % 4 = 0 THEN 1 ELSE 2 + n % 1997 END,
                      CASE WHEN n % 4 = 1 THEN 1 ELSE 2 + (n * 7) % $6::bigint END,
                      'TAP-' || n % 1997,
                      CASE WHEN n % 50000 = 1 THEN 'CARD_BLOCKED'
                           WHEN n % 5000 = 1 THEN 'INSUFFICIENT_FUNDS' END, moment, moment
               FROM generate_series(1, $1) n,
                    LATERAL (SELECT $4::timestamptz
                                    + n * (($5::timestamptz - $4::timestamptz) / $1) AS moment)""",
            TRANSACTION_COUNT,
            first_id_at(NOW - timedelta(days=365)),
            first_id_at(NOW),
            NOW - timedelta(days=365),
            NOW,
            payee_count,
            timeout=60,
        )
        await tx.execute(
            """INSERT INTO entries SELECT id, 0, from_account, to_account, amount
               FROM transactions WHERE status = 'completed' AND from_account <> to_account""",
            timeout=60,
        )
    async with database.connection() as connection:
        await connection.execute("VACUUM ANALYZE", timeout=60)


class QueryExplainer:
    """Fake database that explains queries instead of returning rows.

    Each query is planned once with a custom plan and once with a generic plan, as a prepared
    statement can be.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.plans: list[Any] = []

    @asynccontextmanager
    async def generic_plans(self) -> AsyncIterator["QueryExplainer"]:
        yield self

    async def fetch_generic(self, sql: str, *values: object) -> list[Any]:
        return await self.fetch(sql, *values)

    async def fetchval(self, sql: str, *values: object, **_: object) -> int:
        await self.fetch(sql, *values)
        return 0

    async def execute(self, sql: str, *values: object) -> None:
        await self.fetch(sql, *values)

    async def fetch(self, sql: str, *values: object, **_: object) -> list[Any]:
        literals = ", ".join(f"'{_format_literal(value)}'" for value in values)
        arguments = f"({literals})" if values else ""
        async with self._database.connection() as connection:
            await connection.execute(f"PREPARE explained AS {sql}")
            for mode in ("force_custom_plan", "force_generic_plan"):
                await connection.execute(f"SET plan_cache_mode = {mode}")
                text = await connection.fetchval(
                    f"EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) EXECUTE explained {arguments}"
                )
                self.plans.append(msgspec.json.decode(text)[0]["Plan"])
            await connection.execute("RESET plan_cache_mode; DEALLOCATE explained")
        return []


def _format_literal(value: object) -> str:
    return f"{{{','.join(map(str, value))}}}" if isinstance(value, list) else str(value)


def walk_plan(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from walk_plan(child)


def count_rows_read(plan: dict[str, Any], table: str = "transactions") -> int:
    """Return the number of rows read from a table, including filtered rows."""
    scans = [node for node in walk_plan(plan) if node.get("Relation Name", "").startswith(table)]
    assert scans
    assert "Seq Scan" not in {node["Node Type"] for node in scans}
    return round(
        sum(
            (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
            for node in scans
        )
    )
