"""SQL queries for float requests."""

from datetime import datetime
from typing import Final

import asyncpg

from tapgate.auth.owners import FLOAT_REQUESTS, OwnerView, limit_to_owner
from tapgate.business.agents.float_requests.model import FloatRequest
from tapgate.ledger.commands import ScopedIdempotencyKey
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.rows import insert_values
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import Code, require_found
from tapgate_client.schemas.float_requests import (
    FloatProvider,
    FloatRequestFilters,
    FloatRequestStatus,
)

_SELECT: Final = """SELECT f.id, f.agent_id, f.parent_agent_id, f.amount, f.currency, f.note,
    f.status, f.finance_at, f.transaction_id, f.reason, f.created_at, f.updated_at, f.fingerprint,
    account.holder_name AS name, account.balance AS float_balance, agent.business_name
    FROM float_requests f JOIN agents agent ON agent.id = f.agent_id
    JOIN accounts account ON account.id = agent.account_id"""

#: SQL condition for a request `f` that waits for finance at the time `{}`.
WAITS_FOR_FINANCE: Final = "f.status = 'open' AND f.finance_at <= {}"


async def get(
    reader: Database | Transaction, request_id: int, *, for_update: bool = False
) -> FloatRequest:
    lock = "FOR UPDATE OF f" if for_update else ""
    row = await reader.fetchrow(f"{_SELECT} WHERE f.id = $1 {lock}", request_id)
    return _build(require_found(row, Code.FLOAT_REQUEST_NOT_FOUND))


async def find_by_key(tx: Transaction, key: ScopedIdempotencyKey) -> FloatRequest | None:
    """Return the float request that a request with this idempotency key made."""
    row = await tx.fetchrow(
        f"{_SELECT} WHERE f.scope = ANY ($1::text[]) AND f.request_id = $2",
        list(key.lookup_scopes or (key.scope,)),
        key.request_id,
    )
    return None if row is None else _build(row)


async def list_page(
    database: Database, filters: FloatRequestFilters, now: datetime, view: OwnerView | None
) -> list[FloatRequest]:
    """Return a page of matching requests, plus one row if there are more."""
    conditions = PageConditions(filters, "f.id")
    limit_to_owner(conditions, view, FLOAT_REQUESTS)
    conditions.where_word("f.status", filters.status)
    conditions.where_id("f.agent_id", ids.AGENT, filters.agent_id)
    conditions.where_id("f.parent_agent_id", ids.AGENT, filters.parent_agent_id)
    if filters.waits_for is not None:
        is_finance = filters.waits_for == FloatProvider.FINANCE
        comparison = "<=" if is_finance else ">"
        conditions.add(f"f.status = 'open' AND f.finance_at {comparison} {conditions.bind(now)}")
    return [_build(row) for row in await conditions.fetch(database, _SELECT)]


async def add(tx: Transaction, item: FloatRequest, key: ScopedIdempotencyKey | None) -> None:
    await insert_values(
        tx,
        "float_requests",
        id=item.id,
        agent_id=item.agent_id,
        parent_agent_id=item.parent_agent_id,
        amount=item.amount,
        currency=item.currency,
        note=item.note,
        status=item.status,
        finance_at=item.finance_at,
        created_at=item.created_at,
        updated_at=item.updated_at,
        scope=key and key.scope,
        request_id=key and key.request_id,
        fingerprint=item.fingerprint,
    )


async def save(tx: Transaction, item: FloatRequest) -> None:
    """Store the state. The caller must hold the lock on the request."""
    await tx.execute(
        """UPDATE float_requests SET status = $2, finance_at = $3, transaction_id = $4,
               reason = $5, updated_at = $6
           WHERE id = $1""",
        item.id,
        item.status,
        item.finance_at,
        item.transaction_id,
        item.reason,
        item.updated_at,
    )


async def get_phone_number(tx: Transaction, agent_id: int) -> str:
    phone_number: str = await tx.fetchval("SELECT phone_number FROM agents WHERE id = $1", agent_id)
    return phone_number


def _build(row: asyncpg.Record) -> FloatRequest:
    return FloatRequest(**{**row, "status": FloatRequestStatus(row["status"])})
