"""Validation of a batch: every line is checked by one statement, whatever the number of lines."""

from typing import Any, Final

from tapgate.auth.actors import Actor
from tapgate.business.finance.batches import operations, queries
from tapgate.business.finance.batches.model import Batch
from tapgate.ledger import chart
from tapgate.ledger.rules.loaded_rules import Rules, load_rules
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import money
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.batches import BatchStatus
from tapgate_client.schemas.cards import CardStatus

#: All lines for a receiver are added up. If they exceed the room under the maximum balance, none of
#: them is valid: which of several salaries to pay is not for the platform to choose. Of lines with
#: the same receiver, amount and reference, only the first is valid.
_CHECK_LINES: Final = f"""
    WITH found AS (
        SELECT l.row, l.amount, l.reference, a.id AS account_id, a.owner_id,
               a.balance, r.max_balance,
               CASE
                   WHEN l.problem IS NOT NULL THEN '{Code.VALIDATION_FAILED}'
                   WHEN l.card_serial IS NOT NULL AND c.id IS NULL THEN '{Code.CARD_NOT_FOUND}'
                   WHEN c.id IS NOT NULL AND (c.status <> '{CardStatus.ACTIVE}'
                        OR c.expires_at <= $2) THEN '{Code.CARD_NOT_ACTIVE}'
                   WHEN a.id IS NULL THEN '{Code.SUBSCRIBER_NOT_FOUND}'
                   WHEN a.status <> '{chart.ACTIVE}' THEN '{Code.SUBSCRIBER_BLOCKED}'
               END AS code
        FROM batch_lines l
        LEFT JOIN subscribers s ON s.phone_number = l.phone_number
        LEFT JOIN cards c ON c.serial = l.card_serial
        LEFT JOIN accounts a ON a.id = coalesce(s.account_id, c.account_id)
        LEFT JOIN account_rules r ON r.kyc_level = a.kyc_level
        WHERE l.batch_id = $1
    ), numbered AS (
        SELECT *, row_number() OVER (
            PARTITION BY account_id, amount, reference ORDER BY row) AS occurrence
        FROM found WHERE code IS NULL
    ), summed AS (
        SELECT *, sum(amount) FILTER (WHERE occurrence = 1)
                  OVER (PARTITION BY account_id) AS received
        FROM numbered
    ), checked AS (
        SELECT row, owner_id, CASE
                   WHEN occurrence > 1 THEN '{Code.DUPLICATE_REFERENCE}'
                   WHEN balance + received > max_balance THEN '{Code.MAX_BALANCE_EXCEEDED}'
               END AS code
        FROM summed
        UNION ALL SELECT row, owner_id, code FROM found WHERE code IS NOT NULL
    )
    UPDATE batch_lines SET code = checked.code, subscriber_id = checked.owner_id,
           status = CASE WHEN checked.code IS NULL THEN 'pending' ELSE 'invalid' END
    FROM checked WHERE batch_lines.batch_id = $1 AND batch_lines.row = checked.row"""


async def validate(tx: Transaction, actor: Actor, batch_id: int) -> Batch:
    """Check a draft's lines and whether the source can pay the valid ones."""
    batch = await queries.lock(tx, batch_id)
    batch.require_status(BatchStatus.DRAFT)
    if not batch.lines:
        raise ApiError(Code.BATCH_NOT_READY, "The batch has no lines.")
    await operations.extend_timeout(tx)
    timeout = operations.LINES_TIMEOUT_SECONDS
    await tx.execute(_CHECK_LINES, batch_id, tx.now(), timeout=timeout)
    amounts = await tx.fetch(
        """SELECT amount, count(*) AS count FROM batch_lines
           WHERE batch_id = $1 AND status = 'pending' GROUP BY amount""",
        batch_id,
        timeout=timeout,
    )
    if batch.partner_id is not None:
        rules = await load_rules(tx, batch.currency)
        await _require_funds(tx, batch, rules, amounts)
    return await operations.store_validation(
        tx,
        actor,
        batch,
        valid=sum(row["count"] for row in amounts),
        total_amount=sum(row["amount"] * row["count"] for row in amounts),
    )


async def _require_funds(tx: Transaction, batch: Batch, rules: Rules, amounts: Any) -> None:
    """Raise an error if the partner cannot pay all valid lines with their fees."""
    required = sum(
        row["count"] * (row["amount"] + rules.calculate_fee(chart.BATCH_CREDIT, row["amount"])[0])
        for row in amounts
    )
    account = await tx.fetchrow(
        """SELECT status, balance - held + overdraft AS available FROM accounts
           WHERE owner_id = $1 AND kind = $2""",
        batch.partner_id,
        chart.CLEARING,
    )
    if account["status"] != chart.ACTIVE:
        raise ApiError(Code.PARTNER_SUSPENDED)
    if account["available"] < required:
        details = {
            "available": money.to_float(account["available"], batch.currency),
            "required": money.to_float(required, batch.currency),
        }
        raise ApiError(Code.INSUFFICIENT_FUNDS, details=details)
