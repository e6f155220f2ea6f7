"""SQL queries for disputes."""

from datetime import datetime
from typing import Final

import asyncpg

from tapgate.auth.owners import DISPUTES, OwnerView, limit_to_owner
from tapgate.business.disputes.model import Dispute, Payment
from tapgate.ledger import chart
from tapgate.ledger.commands import ScopedIdempotencyKey
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import Code, require_found
from tapgate_client.schemas.disputes import DisputeFilters, DisputeStatus

_SELECT: Final = f"""SELECT d.id, d.transaction_id, d.subscriber_id, d.processor_id,
    (SELECT public_name FROM accounts
     WHERE owner_id = d.processor_id AND kind = '{chart.SETTLEMENT}') AS processor_name,
    (SELECT context ->> 'merchant_name' FROM transactions WHERE id = d.transaction_id)
        AS merchant_name,
    (SELECT holder_name FROM accounts
     WHERE owner_id = d.subscriber_id AND kind = '{chart.WALLET}') AS subscriber_name,
    d.amount, d.currency, d.reason, d.description, d.status, d.merchant_response,
    d.decision_reason, d.due_at, d.created_at, d.updated_at, d.fingerprint
    FROM disputes d"""


async def get(
    reader: Database | Transaction,
    dispute_id: int,
    *,
    processor_id: int | None = None,
    for_update: bool = False,
) -> Dispute:
    """Return a dispute; with `processor_id`, only if it concerns that processor."""
    lock = "FOR UPDATE OF d" if for_update else ""
    row = await reader.fetchrow(
        f"{_SELECT} WHERE d.id = $1 AND ($2::bigint IS NULL OR d.processor_id = $2) {lock}",
        dispute_id,
        processor_id,
    )
    return _build(require_found(row, Code.DISPUTE_NOT_FOUND))


async def find_by_transaction(tx: Transaction, transaction_id: int) -> Dispute | None:
    row = await tx.fetchrow(f"{_SELECT} WHERE d.transaction_id = $1", transaction_id)
    return None if row is None else _build(row)


async def find_by_key(tx: Transaction, key: ScopedIdempotencyKey) -> Dispute | None:
    """Return the dispute that a request with this idempotency key opened."""
    scopes = key.lookup_scopes or (key.scope,)
    row = await tx.fetchrow(
        f"{_SELECT} WHERE d.scope = ANY ($1::text[]) AND d.request_id = $2",
        list(scopes),
        key.request_id,
    )
    return None if row is None else _build(row)


async def get_payment(tx: Transaction, transaction_id: int) -> Payment:
    row = await tx.fetchrow(
        f"""SELECT t.id, t.type, t.status, t.amount, t.refunded_amount, t.currency, t.created_at,
                   CASE payer.kind WHEN '{chart.WALLET}' THEN payer.owner_id END AS subscriber_id,
                   CASE payee.kind WHEN '{chart.SETTLEMENT}' THEN payee.owner_id END
                       AS processor_id
            FROM transactions t
            LEFT JOIN accounts payer ON payer.id = t.from_account
            LEFT JOIN accounts payee ON payee.id = t.to_account
            WHERE t.id = $1""",
        transaction_id,
    )
    return Payment(**require_found(row, Code.TRANSACTION_NOT_FOUND))


async def get_remaining(database: Database, transaction_id: int) -> int:
    """Return how much of a payment is not refunded."""
    remaining: int = await database.fetchval(
        "SELECT amount - refunded_amount FROM transactions WHERE id = $1", transaction_id
    )
    return remaining


async def add(tx: Transaction, dispute: Dispute, key: ScopedIdempotencyKey | None) -> bool:
    """Insert a dispute unless the payment already has one; return whether it is new."""
    inserted = await tx.fetchval(
        """INSERT INTO disputes (id, transaction_id, subscriber_id, processor_id, amount, currency,
               reason, description, status, due_at, created_at, updated_at, scope, request_id,
               fingerprint)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, $12, $13, $14)
           ON CONFLICT DO NOTHING RETURNING true""",
        dispute.id,
        dispute.transaction_id,
        dispute.subscriber_id,
        dispute.processor_id,
        dispute.amount,
        dispute.currency,
        dispute.reason,
        dispute.description,
        dispute.status,
        dispute.due_at,
        dispute.created_at,
        None if key is None else key.scope,
        None if key is None else key.request_id,
        dispute.fingerprint,
    )
    return inserted is not None


async def save(tx: Transaction, dispute: Dispute) -> None:
    """Store the state. The caller must hold the lock on the dispute."""
    await tx.execute(
        """UPDATE disputes SET status = $2, merchant_response = $3, decision_reason = $4,
               updated_at = $5
           WHERE id = $1""",
        dispute.id,
        dispute.status,
        dispute.merchant_response,
        dispute.decision_reason,
        dispute.updated_at,
    )


async def list_page(
    database: Database,
    filters: DisputeFilters,
    now: datetime,
    *,
    processor_id: int | None,
    view: OwnerView | None,
) -> list[Dispute]:
    conditions = PageConditions(filters, "d.id")
    limit_to_owner(conditions, view, DISPUTES)
    conditions.where_word("d.status", filters.status)
    conditions.where_id("d.subscriber_id", ids.SUBSCRIBER, filters.subscriber_id)
    conditions.where_id("d.processor_id", ids.PROCESSOR, filters.processor_id)
    conditions.where_id("d.transaction_id", ids.TRANSACTION, filters.transaction_id)
    conditions.where("d.processor_id = {}", processor_id)
    if filters.overdue is not None:
        is_overdue = f"(d.status = 'open' AND d.due_at <= {conditions.bind(now)})"
        conditions.add(is_overdue if filters.overdue else f"NOT {is_overdue}")
    return [_build(row) for row in await conditions.fetch(database, _SELECT)]


async def get_recipient(tx: Transaction, subscriber_id: int) -> tuple[str, str]:
    """Return the cardholder's phone number and language."""
    row = await tx.fetchrow(
        "SELECT phone_number, language FROM subscribers WHERE id = $1", subscriber_id
    )
    return row["phone_number"], row["language"]


def _build(row: asyncpg.Record) -> Dispute:
    return Dispute(**{**row, "status": DisputeStatus(row["status"])})
