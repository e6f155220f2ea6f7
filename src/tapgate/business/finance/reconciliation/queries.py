"""SQL queries for bank statements, their lines, and what the lines can be matched with."""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from tapgate.business.finance.reconciliation.matching import (
    MAX_DISTANCE,
    Deposit,
    PayoutCandidate,
)
from tapgate.business.finance.reconciliation.model import Line, Statement
from tapgate.core.id_generator import first_id_at, get_time
from tapgate.core.records import require_record
from tapgate.ledger import chart
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.clock import get_platform_day
from tapgate_client.schemas.bank_statements import (
    BankStatementFilters,
    BankStatementLineFilters,
    CsvMapping,
    LineStatus,
)

_COUNTS: Final = ("lines", "matched", "unmatched", "posted", "ignored")
STORED_COLUMNS: Final = tuple(name for name in Statement.__struct_fields__ if name not in _COUNTS)
_SELECT: Final = f"""
    SELECT {", ".join(f"s.{name}" for name in STORED_COLUMNS)}, counted.*
    FROM bank_statements s CROSS JOIN LATERAL (
        SELECT count(*) AS lines, {
    ", ".join(f"count(*) FILTER (WHERE status = '{status}') AS {status}" for status in LineStatus)
} FROM bank_statement_lines WHERE statement_id = s.id) AS counted"""
_HAS_UNMATCHED: Final = """EXISTS (SELECT FROM bank_statement_lines
    WHERE statement_id = s.id AND status = 'unmatched')"""
_LINE_COLUMNS: Final = ", ".join(Line.__struct_fields__)
_SELECT_LINE: Final = f"SELECT {_LINE_COLUMNS} FROM bank_statement_lines"
#: How long before or after a line a deposit with its reference is searched for.
_REFERENCE_PERIOD: Final = timedelta(days=90)
#: Time zones and the clocks of processes differ by less.
_DAY_TOLERANCE: Final = timedelta(days=1, hours=1)
_SELECT_DEPOSITS: Final = """
    SELECT t.id, t.amount, t.context ->> 'reference' AS reference, a.holder_name
    FROM transactions t JOIN accounts a ON a.id = t.to_account
    WHERE t.type IN ('agent_fund', 'partner_deposit') AND t.status = 'completed'
      AND t.id >= $1 AND t.id < $2
      AND NOT EXISTS (SELECT FROM bank_statement_lines WHERE transaction_id = t.id)"""
_SELECT_PAYOUTS: Final = """
    SELECT p.id, p.reference, p.amount, p.status, p.updated_at, a.holder_name
    FROM payouts p JOIN accounts a ON a.id = p.account_id"""


async def get(reader: Any, statement_id: int) -> Statement:
    row = await reader.fetchrow(f"{_SELECT} WHERE s.id = $1", statement_id)
    return Statement(**require_record(ids.BANK_STATEMENT, row))


async def list_page(database: Database, filters: BankStatementFilters) -> list[Statement]:
    conditions = PageConditions(filters, "s.id")
    account_id = filters.bank_account_id
    number = None if account_id is None else ids.decode(ids.BANK_ACCOUNT, account_id) or 0
    conditions.where("s.bank_account_id = {}", number)
    if filters.unmatched is not None:
        conditions.add(_HAS_UNMATCHED if filters.unmatched else f"NOT {_HAS_UNMATCHED}")
    return [Statement(**row) for row in await conditions.fetch(database, _SELECT)]


async def list_unfinished(reader: Any, before: datetime) -> list[int]:
    """Return the statements whose lines were not all compared before a process stopped."""
    rows = await reader.fetch(
        "SELECT id FROM bank_statements WHERE matched_at IS NULL AND created_at < $1 ORDER BY id",
        before,
    )
    return [row["id"] for row in rows]


async def get_line(reader: Any, line_id: int, *, for_update: bool = False) -> Line:
    lock = " FOR UPDATE" if for_update else ""
    row = await reader.fetchrow(f"{_SELECT_LINE} WHERE id = $1{lock}", line_id)
    return Line(**require_record(ids.BANK_STATEMENT_LINE, row))


async def list_lines(database: Database, filters: BankStatementLineFilters) -> list[Line]:
    conditions = PageConditions(filters)
    statement_id = filters.statement_id
    number = None if statement_id is None else ids.decode(ids.BANK_STATEMENT, statement_id) or 0
    conditions.where("statement_id = {}", number)
    conditions.where_word("status", filters.status)
    return [Line(**row) for row in await conditions.fetch(database, _SELECT_LINE)]


async def list_open_lines(reader: Any, statement_id: int) -> list[Line]:
    rows = await reader.fetch(
        f"{_SELECT_LINE} WHERE statement_id = $1 AND status = 'unmatched' ORDER BY id",
        statement_id,
    )
    return [Line(**row) for row in rows]


async def list_rivals(
    reader: Any, statement_id: int, amounts: Collection[int], period: tuple[date, date]
) -> list[Line]:
    """Return open lines of other statements that could belong to the same candidates."""
    rows = await reader.fetch(
        f"""{_SELECT_LINE} WHERE status = 'unmatched' AND statement_id <> $1
            AND amount = ANY ($2::bigint[]) AND day BETWEEN $3 AND $4""",
        statement_id,
        list(amounts),
        period[0] - 2 * MAX_DISTANCE,
        period[1] + 2 * MAX_DISTANCE,
    )
    return [Line(**row) for row in rows]


async def count_known(reader: Any, account: str, period: tuple[date, date]) -> Counter[Any]:
    """Return how often an account's earlier statements have a date, amount and reference."""
    rows = await reader.fetch(
        """SELECT day, amount, coalesce(reference, '') AS reference, count(*)
           FROM bank_statement_lines WHERE account = $1 AND day BETWEEN $2 AND $3
           GROUP BY 1, 2, 3""",
        account,
        *period,
    )
    return Counter({tuple(row)[:3]: row["count"] for row in rows})


async def list_payouts(
    reader: Any, references: Collection[str], amounts: Collection[int], zone: ZoneInfo
) -> list[PayoutCandidate]:
    """Return the payouts with these references, and submitted ones with these amounts."""
    rows = await reader.fetch(
        f"""{_SELECT_PAYOUTS} WHERE p.reference = ANY ($1::text[])
            UNION {_SELECT_PAYOUTS}
            WHERE p.status = 'submitted' AND p.amount = ANY ($2::bigint[])""",
        list(references),
        list(amounts),
    )
    return [
        PayoutCandidate(
            row["id"],
            row["reference"],
            row["amount"],
            row["status"],
            get_platform_day(row["updated_at"], zone),
        )
        for row in rows
    ]


async def list_deposits(
    reader: Any,
    references: Collection[str],
    amounts: Collection[int],
    period: tuple[date, date],
    zone: ZoneInfo,
) -> list[Deposit]:
    """Return deposits with these amounts and a date near the period, or one of the references."""
    first, end = _get_id_range(period, MAX_DISTANCE)
    rows = await reader.fetch(
        f"{_SELECT_DEPOSITS} AND t.amount = ANY ($3::bigint[])", first, end, list(amounts)
    )
    if references:
        rows += await reader.fetch(
            f"""{_SELECT_DEPOSITS} AND t.amount = ANY ($3::bigint[])
                AND upper(regexp_replace(t.context ->> 'reference', '\\s', '', 'g'))
                    = ANY ($4::text[])""",
            *_get_id_range(period, _REFERENCE_PERIOD),
            list(amounts),
            list(references),
        )
    return list({row["id"]: _build_deposit(row, zone) for row in rows}.values())


def _build_deposit(row: Any, zone: ZoneInfo) -> Deposit:
    day = get_platform_day(get_time(row["id"]), zone)
    return Deposit(row["id"], row["reference"], row["amount"], day)


def _get_id_range(period: tuple[date, date], distance: timedelta) -> tuple[int, int]:
    utc = ZoneInfo("UTC")
    first = datetime.combine(period[0], time(), utc) - distance - _DAY_TOLERANCE
    end = datetime.combine(period[1], time(), utc) + distance + 2 * _DAY_TOLERANCE
    return first_id_at(first), first_id_at(end)


async def list_candidate_payouts(
    reader: Any, line: Line, references: Collection[str]
) -> Sequence[Any]:
    """Return the payouts that a person could match a line with."""
    statuses = ["submitted", "paid"] if line.amount < 0 else ["paid", "returned"]
    rows: list[Any] = await reader.fetch(
        f"""{_SELECT_PAYOUTS} WHERE p.amount = $1 AND p.status = ANY ($2::text[])
              AND NOT EXISTS (SELECT FROM bank_statement_lines known
                              WHERE known.payout_id = p.id AND known.amount = $4)
            ORDER BY p.reference = ANY ($3::text[]) DESC, p.id DESC LIMIT 20""",
        abs(line.amount),
        statuses,
        list(references),
        line.amount,
    )
    return rows


async def list_candidate_deposits(reader: Any, line: Line) -> Sequence[Any]:
    """Return the deposits that a person could match a line with."""
    first, end = _get_id_range((line.day, line.day), timedelta(days=30))
    rows: list[Any] = await reader.fetch(
        f"{_SELECT_DEPOSITS} AND t.amount = $3 ORDER BY t.id DESC LIMIT 20",
        first,
        end,
        line.amount,
    )
    return rows


async def find_payout_transaction(
    reader: Any, transaction_id: int, transaction_type: str
) -> int | None:
    """Return the transaction that paid or returned the payout of a transaction."""
    found: int | None = await reader.fetchval(
        "SELECT id FROM transactions WHERE original_id = $1 AND type = $2 AND id > $1",
        transaction_id,
        transaction_type,
    )
    return found


async def get_cash_change(reader: Any, transaction_id: int) -> int:
    """Return how much the platform's cash grew in a transaction, or raise 404."""
    row = await reader.fetchrow(
        """SELECT (SELECT coalesce(sum(CASE cash.id WHEN debit_account THEN e.amount
                                                    ELSE -e.amount END), 0)::bigint
                   FROM entries e JOIN accounts cash ON cash.id IN (debit_account, credit_account)
                   WHERE e.transaction_id = $1 AND cash.kind = $2 AND cash.owner_id IS NULL)
           FROM transactions WHERE id = $1""",
        transaction_id,
        chart.CASH,
    )
    change: int = require_record(ids.TRANSACTION, row)[0]
    return change


async def find_mapping(reader: Any, bank_account_id: int) -> CsvMapping | None:
    value = await reader.fetchval(
        "SELECT mapping FROM csv_mappings WHERE bank_account_id = $1", bank_account_id
    )
    return None if value is None else msgspec.convert(value, CsvMapping)
