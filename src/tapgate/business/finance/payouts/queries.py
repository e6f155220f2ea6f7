"""SQL queries for payouts, payout runs and schedules."""

from datetime import date, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from tapgate.auth.owners import PAYOUTS, OwnerView, limit_to_owner
from tapgate.business.finance.bank_accounts.model import parse_owner_id
from tapgate.business.finance.payouts.model import Payout, PayoutRun, StoredSchedule, to_record
from tapgate.core.records import require_record
from tapgate.http.api.services import Services
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.schemas.pagination import PageQuery
from tapgate_client.schemas.payouts import PayoutFilters, PayoutRecord, PayoutStatus
from tapgate_client.schemas.periods import parse_period_end, parse_period_start

_COLUMNS: Final = ", ".join(
    f"p.{name}" for name in Payout.__struct_fields__ if name != "owner_name"
)
_SELECT: Final = f"""
    SELECT {_COLUMNS}, a.holder_name AS owner_name
    FROM payouts p JOIN accounts a ON a.id = p.account_id"""
#: Statuses of payouts that were sent to the bank.
_RUN_STATUSES: Final = (PayoutStatus.SUBMITTED, PayoutStatus.PAID, PayoutStatus.RETURNED)
_RUN_COLUMNS: Final = ", ".join(
    f"r.{name}" for name in PayoutRun.__struct_fields__ if name not in _RUN_STATUSES
)
_SELECT_RUN: Final = f"""
    SELECT {_RUN_COLUMNS}, counted.* FROM payout_runs r CROSS JOIN LATERAL (
        SELECT {
    ", ".join(f"count(*) FILTER (WHERE status = '{name}') AS {name}" for name in _RUN_STATUSES)
} FROM payouts WHERE run_id = r.id) AS counted"""
_SELECT_SCHEDULE: Final = f"""
    SELECT {", ".join(StoredSchedule.__struct_fields__)} FROM payout_schedules"""


async def get(reader: Any, payout_id: int) -> Payout:
    row = await reader.fetchrow(f"{_SELECT} WHERE p.id = $1", payout_id)
    return Payout(**require_record(ids.PAYOUT, row))


async def get_by_transaction(reader: Any, transaction_id: int) -> Payout:
    row = await reader.fetchrow(f"{_SELECT} WHERE p.transaction_id = $1", transaction_id)
    return Payout(**require_record(ids.PAYOUT, row))


async def get_time(reader: Any, transaction_id: int) -> datetime | None:
    """Return when a transaction was made, or None if it is archived."""
    moment: datetime | None = await reader.fetchval(
        "SELECT created_at FROM transactions WHERE id = $1", transaction_id
    )
    return moment


async def list_page(
    database: Database, filters: PayoutFilters, zone: ZoneInfo, view: OwnerView | None
) -> list[Payout]:
    conditions = PageConditions(filters, "p.id")
    limit_to_owner(conditions, view, PAYOUTS)
    owner = None if filters.owner_id is None else parse_owner_id(filters.owner_id)
    conditions.where("p.owner_id = {}", owner and owner[1])
    conditions.where_word("p.status", filters.status)
    run_id = None if filters.run_id is None else ids.decode(ids.PAYOUT_RUN, filters.run_id) or 0
    conditions.where("p.run_id = {}", run_id)
    conditions.where("p.created_at >= {}", parse_period_start(filters.from_, zone))
    conditions.where("p.created_at < {}", parse_period_end(filters.to, zone))
    return [Payout(**row) for row in await conditions.fetch(database, _SELECT)]


async def load_records(services: Services, numbers: list[int]) -> dict[int, PayoutRecord]:
    """Return the records of payouts by their IDs."""
    rows = await services.database.fetch(f"{_SELECT} WHERE p.id = ANY ($1::bigint[])", numbers)
    return {row["id"]: to_record(Payout(**row)) for row in rows}


async def get_run(reader: Any, run_id: int) -> PayoutRun:
    row = await reader.fetchrow(f"{_SELECT_RUN} WHERE r.id = $1", run_id)
    return PayoutRun(**require_record(ids.PAYOUT_RUN, row))


async def list_runs(database: Database, query: PageQuery) -> list[PayoutRun]:
    conditions = PageConditions(query, "r.id")
    return [PayoutRun(**row) for row in await conditions.fetch(database, _SELECT_RUN)]


async def require_processor(reader: Any, processor_id: int) -> None:
    """Raise 404 if the processor does not exist."""
    sql = "SELECT id FROM processors WHERE id = $1"
    require_record(ids.PROCESSOR, await reader.fetchval(sql, processor_id))


async def find_schedule(reader: Any, processor_id: int) -> StoredSchedule | None:
    row = await reader.fetchrow(f"{_SELECT_SCHEDULE} WHERE processor_id = $1", processor_id)
    return None if row is None else StoredSchedule(**row)


async def list_due_schedules(reader: Any, day: date) -> list[StoredSchedule]:
    """Return the schedules whose payout for a day was not requested yet."""
    rows = await reader.fetch(
        f"""{_SELECT_SCHEDULE} WHERE interval <> 'manual' AND (last_day IS NULL OR last_day < $1)
            ORDER BY processor_id""",
        day,
    )
    return [StoredSchedule(**row) for row in rows]
