"""Transaction list totals, without reading all transactions.

A list that is filtered only by type, outcome and period of up to a year is added up from the
rollups. Other lists are added up over their newest transactions, up to a limit.
"""

from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from tapgate.business.payments.transactions.queries import TransactionSums
from tapgate.business.payments.transactions.reader import TransactionReader
from tapgate.ledger.effects.rollups import get_bucket_start
from tapgate.runtime.store.conditions import Conditions
from tapgate.runtime.store.database import Database
from tapgate_client import money
from tapgate_client.schemas.periods import parse_period_end, parse_period_start
from tapgate_client.schemas.transactions import (
    FLOW_TYPES,
    TransactionFilters,
    TransactionListTotals,
    TransactionStatus,
)

#: Transactions that are added up one by one.
MAX_SUMMED: Final = 10_000
_MAX_ROLLUP_PERIOD: Final = timedelta(days=366)
#: Statuses that are also outcomes. Rollups count refunded payments as completed.
_OUTCOMES: Final = (None, TransactionStatus.FAILED, TransactionStatus.UNDER_REVIEW)


async def get_totals(
    database: Database, reader: TransactionReader, filters: TransactionFilters, currency: str
) -> TransactionListTotals:
    period = None
    if reader.caller.owner is None:  # the rollups add up everybody's transactions
        period = _get_rollup_period(filters, reader.now, reader.zone)
    if period is None:
        sums = await reader.sum_newest(replace(filters, limit=MAX_SUMMED))
    else:
        sums = await _sum_rollups(database, filters, *period)
    return TransactionListTotals(
        count=sums.transactions,
        amount=money.format_decimal(sums.amount, currency),
        fees=money.format_decimal(sums.fees, currency),
        currency=currency,
        is_complete=sums.is_complete,
    )


def _get_rollup_period(
    filters: TransactionFilters, now: datetime, zone: ZoneInfo
) -> tuple[datetime, datetime] | None:
    """Return the period's bounds if the rollups can answer the request, otherwise None."""
    start = parse_period_start(filters.from_, zone)
    end = parse_period_end(filters.to, zone) or now + timedelta(days=1)
    if filters.user_id or filters.card_serial or filters.status not in _OUTCOMES or start is None:
        return None
    is_aligned = get_bucket_start(start) == start and (
        filters.to is None or get_bucket_start(end) == end
    )
    return (start, end) if is_aligned and end - start <= _MAX_ROLLUP_PERIOD else None


async def _sum_rollups(
    database: Database, filters: TransactionFilters, start: datetime, end: datetime
) -> TransactionSums:
    conditions = Conditions()
    conditions.where("quarter >= {}", start)
    conditions.where("quarter < {}", end)
    conditions.where_word("type", filters.type)
    conditions.where_word("outcome", filters.status)
    conditions.where("failure_code = {}", filters.failure_code)
    if filters.flow is not None:
        conditions.where("type = ANY ({}::text[])", list(FLOW_TYPES[filters.flow]))
    row = await database.fetchrow(
        f"""SELECT coalesce(sum(count), 0),
                   coalesce(sum(amount) FILTER (WHERE outcome = 'completed'), 0),
                   coalesce(sum(fees) FILTER (WHERE outcome = 'completed'), 0)
            FROM figures WHERE {conditions}""",
        *conditions.values,
    )
    assert row is not None
    transactions, amount, fees = map(int, row)
    return TransactionSums(transactions, amount, fees, is_complete=True)
