"""Changes to statement lines, and the rows that commit with a line's ledger command."""

from typing import Final

import asyncpg
import msgspec

from tapgate.auth.actors import Actor
from tapgate.business.finance.reconciliation import queries
from tapgate.business.finance.reconciliation.model import Line
from tapgate.events.audit.trail import AuditTrail
from tapgate.ledger.commands import (
    BankLineChange,
    Command,
    RejectedBeforeCommitError,
    ScopedIdempotencyKey,
    TransactionResult,
)
from tapgate.runtime.store.rows import update_row
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.bank_statements import CsvMapping, LineStatus

_trail: Final = AuditTrail("bank_statement_line")
_account_trail: Final = AuditTrail("bank_account")
_COLUMNS: Final = ("status", "transaction_id", "payout_id", "moved_payout", "reason")
#: Audit action by the status of the line after it.
_ACTIONS: Final = {
    LineStatus.UNMATCHED: "reopened",
    LineStatus.MATCHED: "matched",
    LineStatus.POSTED: "posted",
    LineStatus.IGNORED: "ignored",
}


async def record_line_command(
    tx: Transaction, actor: Actor, command: Command, result: TransactionResult
) -> None:
    """Change a line in the ledger's transaction, or reject the command if it is not open."""
    change = command.bank_line
    if change is None:
        return
    line = await queries.get_line(tx, change.line_id, for_update=True)
    is_new = change.key is None or await add_request(tx, change.key, line.id)
    if line.status != change.before or not is_new:
        raise RejectedBeforeCommitError(Code.LINE_NOT_OPEN)
    payout = command.payout_change
    after = replace_line(
        line,
        change.status,
        reason=change.reason,
        transaction_id=result.transaction_id,
        payout_id=None if payout is None else payout.payout_id,
        moved_payout=payout is not None,
    )
    await _store(tx, actor, line, after)


def replace_line(
    line: Line,
    status: str,
    *,
    reason: str | None = None,
    transaction_id: int | None = None,
    payout_id: int | None = None,
    moved_payout: bool = False,
) -> Line:
    """Return the line with another status. An unmatched line belongs to nothing."""
    is_linked = status in (LineStatus.MATCHED, LineStatus.POSTED)
    return msgspec.structs.replace(
        line,
        status=LineStatus(status),
        transaction_id=transaction_id if is_linked else None,
        payout_id=payout_id,
        moved_payout=moved_payout,
        reason=reason,
    )


async def change_line(
    tx: Transaction, actor: Actor, before: Line, after: Line, key: ScopedIdempotencyKey | None
) -> None:
    """Change a line without moving money, if its status is still the same."""
    line = await queries.get_line(tx, before.id, for_update=True)
    is_new = key is None or await add_request(tx, key, line.id)
    if line.status != before.status or not is_new:
        raise ApiError(Code.LINE_NOT_OPEN)
    try:
        await _store(tx, actor, line, after)
    except asyncpg.UniqueViolationError:
        raise ApiError(
            Code.DUPLICATE_REFERENCE, "Another line is matched with this transaction."
        ) from None


async def _store(tx: Transaction, actor: Actor, before: Line, after: Line) -> None:
    await update_row(tx, "bank_statement_lines", after, _COLUMNS)
    target = after if after.transaction_id is not None else before
    transaction_id, payout_id = target.transaction_id, target.payout_id
    await _trail.record(
        tx,
        actor,
        after.public_id,
        _ACTIONS[after.status],
        reason=after.reason,
        changes={
            "status": (before.status, after.status),
            "transaction_id": (
                None,
                transaction_id and ids.encode(ids.TRANSACTION, transaction_id),
            ),
            "payout_id": (None, payout_id and ids.encode(ids.PAYOUT, payout_id)),
        },
    )


async def add_request(tx: Transaction, key: ScopedIdempotencyKey, line_id: int) -> bool:
    """Store an idempotency key; return whether it is new."""
    status: str = await tx.execute(
        """INSERT INTO bank_line_requests (scope, request_id, fingerprint, line_id)
           VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING""",
        key.scope,
        key.request_id,
        key.fingerprint,
        line_id,
    )
    return status.endswith(" 1")


async def set_mapping(
    tx: Transaction, actor: Actor, bank_account_id: int, mapping: CsvMapping, *, admin_id: int
) -> None:
    before = await queries.find_mapping(tx, bank_account_id)
    await tx.execute(
        """INSERT INTO csv_mappings (bank_account_id, mapping, updated_by, updated_at)
           VALUES ($1, $2, $3, $4)
           ON CONFLICT (bank_account_id) DO UPDATE
           SET mapping = excluded.mapping, updated_by = excluded.updated_by,
               updated_at = excluded.updated_at""",
        bank_account_id,
        msgspec.to_builtins(mapping),
        admin_id,
        tx.now(),
    )
    await _account_trail.record(
        tx,
        actor,
        ids.encode(ids.BANK_ACCOUNT, bank_account_id),
        "csv_mapping_updated",
        changes={
            "mapping": (
                None if before is None else msgspec.to_builtins(before),
                msgspec.to_builtins(mapping),
            )
        },
    )


def build_line_change(
    line: Line, status: LineStatus, key: ScopedIdempotencyKey | None, reason: str | None = None
) -> BankLineChange:
    return BankLineChange(
        line_id=line.id, before=line.status, status=status, reason=reason, key=key
    )
