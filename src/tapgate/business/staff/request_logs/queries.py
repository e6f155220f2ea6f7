"""SQL queries for the request log."""

from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

import asyncpg

from tapgate.auth.owners import REQUEST_LOGS, OwnerView, limit_to_owner
from tapgate.core.id_generator import first_id_at
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.schemas.periods import parse_period_end, parse_period_start
from tapgate_client.schemas.request_logs import RequestLogQuery, RequestResult

_LIST_COLUMNS: Final = """id, key_id, caller_type, caller_name, method, endpoint, path, status,
    code, duration_us, request_id, ip, idempotency_key, transaction_id"""


async def list_page(
    database: Database,
    query: RequestLogQuery,
    since: datetime,
    zone: ZoneInfo,
    view: OwnerView | None,
) -> list[asyncpg.Record]:
    """Return the newest matching requests since a time, up to the limit plus one."""
    conditions = PageConditions(query)
    limit_to_owner(conditions, view, REQUEST_LOGS)
    start, end = parse_period_start(query.from_, zone), parse_period_end(query.to, zone)
    conditions.where("id >= {}", first_id_at(max(since, start) if start else since))
    conditions.where("id < {}", None if end is None else first_id_at(end))
    conditions.where_id("key_id", ids.KEY, query.api_key_id)
    conditions.where("method = {}", query.method)
    conditions.where("endpoint = {}", query.endpoint)
    conditions.where("status = {}", query.status)
    conditions.where("code = {}", query.error_code)
    conditions.where("request_id = {}", query.request_id)
    conditions.where("idempotency_key = {}", query.idempotency_key)
    conditions.where_id("transaction_id", ids.TRANSACTION, query.transaction_id)
    if query.result == RequestResult.SUCCEEDED:
        conditions.add("status < 400")
    elif query.result or query.error_code or (query.status or 0) >= 400:
        conditions.add("status >= 400")  # the partial index's condition
    return await conditions.fetch(database, f"SELECT {_LIST_COLUMNS} FROM request_logs")


async def find_by_key(database: Database, text: str, since: datetime) -> list[asyncpg.Record]:
    """Return requests by their own ID, which the response named, or their idempotency key."""
    return await database.fetch(
        f"""SELECT {_LIST_COLUMNS} FROM request_logs
            WHERE (request_id = $1 OR idempotency_key = $1) AND id >= $2
            ORDER BY id DESC LIMIT 5""",
        text,
        first_id_at(since),
    )


async def find(database: Database, log_id: int, since: datetime) -> Any:
    """Return a request with its bodies, or None."""
    return await database.fetchrow(
        f"""SELECT {_LIST_COLUMNS}, query, request_body, response_body FROM request_logs
            WHERE id = $1 AND id >= $2""",
        log_id,
        first_id_at(since),
    )
