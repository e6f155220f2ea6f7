"""SQL queries for cash-out requests."""

from datetime import datetime, timedelta
from typing import Final

import asyncpg

from tapgate.business.agents.cash_out_requests.model import CashOutRequest
from tapgate.ledger.commands import ScopedIdempotencyKey
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import Code, require_found
from tapgate_client.schemas.cash_out_requests import CashOutRequestStatus

_SELECT: Final = """SELECT c.id, c.agent_id, c.subscriber_id, c.card_serial, c.amount, c.currency,
    c.status, c.transaction_id, c.expires_at, c.created_at, c.fingerprint,
    float.holder_name AS agent_person_name, agent.business_name, agent.phone_number AS agent_phone,
    concat_ws(' ', s.first_name, s.last_name) AS customer_name,
    s.phone_number AS customer_phone, s.language AS customer_language
    FROM cash_out_requests c JOIN agents agent ON agent.id = c.agent_id
    JOIN accounts float ON float.id = agent.account_id
    JOIN subscribers s ON s.id = c.subscriber_id"""


async def get(
    reader: Database | Transaction, request_id: int, *, for_update: bool = False
) -> CashOutRequest:
    lock = "FOR UPDATE OF c" if for_update else ""
    row = await reader.fetchrow(f"{_SELECT} WHERE c.id = $1 {lock}", request_id)
    return _build(require_found(row, Code.CASH_OUT_REQUEST_NOT_FOUND))


async def find_by_key(
    reader: Database | Transaction, key: ScopedIdempotencyKey
) -> CashOutRequest | None:
    """Return the cash-out request that a request with this idempotency key made."""
    row = await reader.fetchrow(
        f"{_SELECT} WHERE c.scope = ANY ($1::text[]) AND c.request_id = $2",
        list(key.lookup_scopes or (key.scope,)),
        key.request_id,
    )
    return None if row is None else _build(row)


async def list_open(database: Database, subscriber_id: int, now: datetime) -> list[CashOutRequest]:
    rows = await database.fetch(
        f"{_SELECT} WHERE c.subscriber_id = $1 AND c.status = 'open' AND c.expires_at > $2",
        subscriber_id,
        now,
    )
    return [_build(row) for row in rows]


async def expire(tx: Transaction, subscriber_id: int) -> None:
    """End the customer's overdue request, so that another one can be open."""
    await tx.execute(
        """UPDATE cash_out_requests SET status = 'expired', updated_at = $2
           WHERE subscriber_id = $1 AND status = 'open' AND expires_at <= $2""",
        subscriber_id,
        tx.now(),
    )


async def add(
    tx: Transaction,
    key: ScopedIdempotencyKey,
    *,
    agent_id: int,
    subscriber_id: int,
    card_serial: str | None,
    amount: int,
    currency: str,
    lifetime: timedelta,
) -> int | None:
    """Insert a request unless the customer has an open one; return its ID."""
    now = tx.now()
    request_id: int | None = await tx.fetchval(
        """INSERT INTO cash_out_requests (id, agent_id, subscriber_id, card_serial, amount,
               currency, status, expires_at, created_at, updated_at, scope, request_id, fingerprint)
           VALUES ($1, $2, $3, $4, $5, $6, 'open', $7, $8, $8, $9, $10, $11)
           ON CONFLICT DO NOTHING RETURNING id""",
        tx.new_id(),
        agent_id,
        subscriber_id,
        card_serial,
        amount,
        currency,
        now + lifetime,
        now,
        key.scope,
        key.request_id,
        key.fingerprint,
    )
    return request_id


async def save_status(
    tx: Transaction, request_id: int, status: CashOutRequestStatus, transaction_id: int | None
) -> None:
    await tx.execute(
        """UPDATE cash_out_requests SET status = $2, transaction_id = $3, updated_at = $4
           WHERE id = $1""",
        request_id,
        status,
        transaction_id,
        tx.now(),
    )


def _build(row: asyncpg.Record) -> CashOutRequest:
    return CashOutRequest(**{**row, "status": CashOutRequestStatus(row["status"])})
