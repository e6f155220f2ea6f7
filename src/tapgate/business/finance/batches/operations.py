"""State changes of batches, except those that commit with a payment in the ledger."""

from datetime import timedelta
from typing import Any, Final

from tapgate.auth.actors import Actor
from tapgate.business.finance.batches import model, queries
from tapgate.business.finance.batches.lines_parser import ParsedLine, ParsedLines
from tapgate.business.finance.batches.model import Batch
from tapgate.events.audit.trail import AuditTrail
from tapgate.events.webhooks.webhook_events import publish
from tapgate.ledger.commands import ScopedIdempotencyKey
from tapgate.runtime.store.connection_settings import format_timeout
from tapgate.runtime.store.rows import insert_values
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.batches import PLATFORM_SOURCE, BatchStatus, NewBatch

_trail: Final = AuditTrail("batch")
SYSTEM_ACTOR: Final = Actor(record={"type": "system", "id": "batches"})
#: The usual statement timeout is too short to write 50,000 lines.
LINES_TIMEOUT_SECONDS: Final = 30.0
#: The same lines under the same name are refused for this time.
_DUPLICATE_WINDOW: Final = timedelta(hours=24)
_LINE_COLUMNS: Final = ParsedLine._fields


async def create(
    tx: Transaction,
    actor: Actor,
    new: NewBatch,
    *,
    admin_id: int,
    currency: str,
    key: ScopedIdempotencyKey | None,
) -> tuple[Batch, bool]:
    """Create a draft; return it, and whether this is a replay."""
    if key is not None:
        await _lock_name(tx, f"batch {key.scope} {key.request_id}")
        if (replay := await queries.find_created(tx, key)) is not None:
            return replay, True
    partner_id = None
    if new.source_id != PLATFORM_SOURCE:
        partner_id = await _require_partner(tx, new.source_id)
    batch_id = tx.new_id()
    await insert_values(
        tx,
        "batches",
        id=batch_id,
        name=new.name,
        partner_id=partner_id,
        status=BatchStatus.DRAFT,
        currency=currency,
        created_by=admin_id,
        created_at=tx.now(),
        updated_at=tx.now(),
        scope=key and key.scope,
        request_id=key and key.request_id,
        fingerprint=key and key.fingerprint,
    )
    batch = await queries.get(tx, batch_id)
    await _record(tx, actor, "created", batch, name=batch.name, source=new.source_id)
    return batch, False


async def _require_partner(tx: Transaction, public_id: str) -> int:
    partner_id = ids.decode(ids.PARTNER, public_id)
    if not await tx.fetchval("SELECT EXISTS (SELECT FROM partners WHERE id = $1)", partner_id):
        raise ApiError(Code.PARTNER_NOT_FOUND)
    assert partner_id is not None
    return partner_id


async def replace_lines(tx: Transaction, actor: Actor, batch_id: int, parsed: ParsedLines) -> Batch:
    """Replace the lines of a draft."""
    batch = await queries.lock(tx, batch_id)
    batch.require_status(BatchStatus.DRAFT)
    await _require_new_lines(tx, batch, parsed.digest)
    await extend_timeout(tx)
    await tx.execute("DELETE FROM batch_lines WHERE batch_id = $1", batch_id)
    values = dict(zip(_LINE_COLUMNS, map(list, zip(*parsed.lines, strict=True)), strict=True))
    await tx.execute(
        f"""INSERT INTO batch_lines (batch_id, status, {", ".join(_LINE_COLUMNS)})
            SELECT $1, 'pending', *
            FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[],
                        $7::text[], $8::text[])""",
        batch_id,
        *values.values(),
        timeout=LINES_TIMEOUT_SECONDS,
    )
    await tx.execute(
        """UPDATE batches SET lines = $2, valid = 0, invalid = 0, total_amount = $3,
                  lines_digest = $4, lines_at = $5, updated_at = $5
           WHERE id = $1""",
        batch_id,
        len(parsed.lines),
        sum(line.amount or 0 for line in parsed.lines),
        parsed.digest,
        tx.now(),
    )
    batch = await queries.get(tx, batch_id)
    await _record(tx, actor, "uploaded", batch, lines=batch.lines)
    return batch


async def extend_timeout(tx: Transaction) -> None:
    """Give the statements about many lines more time."""
    await tx.execute(f"SET LOCAL statement_timeout = '{format_timeout(LINES_TIMEOUT_SECONDS)}'")


async def _require_new_lines(tx: Transaction, batch: Batch, digest: bytes) -> None:
    """Raise 409 if another batch with this name got the same lines within the last 24 hours."""
    await _lock_name(tx, f"batch lines {digest.hex()}")
    other_id = await tx.fetchval(
        """SELECT id FROM batches
           WHERE lines_digest = $1 AND name = $2 AND id <> $3 AND lines_at > $4
             AND status <> 'cancelled'
           ORDER BY id LIMIT 1""",
        digest,
        batch.name,
        batch.id,
        tx.now() - _DUPLICATE_WINDOW,
    )
    if other_id is not None:
        raise ApiError(
            Code.DUPLICATE_REQUEST,
            "Another batch with this name has the same lines.",
            details={"batch_id": ids.encode(ids.BATCH, other_id)},
        )


async def _lock_name(tx: Transaction, name: str) -> None:
    await tx.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", name)


async def start(
    tx: Transaction,
    actor: Actor,
    batch_id: int,
    *,
    run_by: str,
    approval_id: int | None,
    key: ScopedIdempotencyKey | None,
) -> tuple[Batch, bool]:
    """Start a batch; return it, and whether this is a replay."""
    batch = await queries.lock(tx, batch_id)
    if key is not None:
        await _lock_name(tx, f"batch run {key.scope} {key.request_id}")
        if (replay := await queries.find_started(tx, key)) is not None:
            return replay, True
    batch.require_status(BatchStatus.VALIDATED)
    await tx.execute(
        """UPDATE batches SET status = $2, run_by = $3, approval_id = $4, run_scope = $5,
                  run_request_id = $6, run_fingerprint = $7, updated_at = $8
           WHERE id = $1""",
        batch_id,
        BatchStatus.RUNNING,
        run_by,
        approval_id,
        key and key.scope,
        key and key.request_id,
        key and key.fingerprint,
        tx.now(),
    )
    return await _finish_change(tx, actor, "started", batch), False


async def cancel(tx: Transaction, actor: Actor, batch_id: int) -> Batch:
    """Cancel a batch. The ledger pays no further line: every payment locks the batch's row."""
    batch = await queries.lock(tx, batch_id)
    batch.require_status(*model.CANCELLABLE)
    await _set_status(tx, batch, BatchStatus.CANCELLED)
    return await _finish_change(tx, actor, "cancelled", batch)


async def complete(tx: Transaction, batch_id: int) -> Batch | None:
    """Complete a running batch whose lines are all decided; return None if there is none."""
    batch = await queries.lock(tx, batch_id)
    if batch.status != BatchStatus.RUNNING or await queries.has_pending(tx, batch_id):
        return None
    has_errors = bool(batch.failed or batch.invalid)
    status = BatchStatus.COMPLETED_WITH_ERRORS if has_errors else BatchStatus.COMPLETED
    await _set_status(tx, batch, status)
    await tx.execute("UPDATE batches SET completed_at = $2 WHERE id = $1", batch_id, tx.now())
    batch = await _finish_change(tx, SYSTEM_ACTOR, "completed", batch)
    await publish(tx, "batch.completed", model.to_record(batch))
    return batch


async def fail_line(tx: Transaction, batch_id: int, row: int, code: Code) -> None:
    """Fail a line that the ledger cannot decide, unless it has been decided since."""
    batch = await queries.lock(tx, batch_id)
    if batch.status != BatchStatus.RUNNING:
        return
    failed = await tx.fetchval(
        """UPDATE batch_lines SET status = 'failed', code = $3
           WHERE batch_id = $1 AND row = $2 AND status = 'pending' AND transaction_id IS NULL
           RETURNING 1""",
        batch_id,
        row,
        code,
    )
    if failed:
        await tx.execute("UPDATE batches SET failed = failed + 1 WHERE id = $1", batch_id)


async def store_validation(
    tx: Transaction, actor: Actor, batch: Batch, *, valid: int, total_amount: int
) -> Batch:
    await tx.execute(
        """UPDATE batches SET status = $2, valid = $3, invalid = lines - $3, total_amount = $4,
                  updated_at = $5
           WHERE id = $1""",
        batch.id,
        BatchStatus.VALIDATED,
        valid,
        total_amount,
        tx.now(),
    )
    return await _finish_change(tx, actor, "validated", batch)


async def _set_status(tx: Transaction, batch: Batch, status: BatchStatus) -> None:
    await tx.execute(
        "UPDATE batches SET status = $2, updated_at = $3 WHERE id = $1", batch.id, status, tx.now()
    )


async def _finish_change(tx: Transaction, actor: Actor, action: str, before: Batch) -> Batch:
    """Record a status change and return the batch after it."""
    after = await queries.get(tx, before.id)
    old, new = model.to_record(before), model.to_record(after)
    names = ("status", "valid", "invalid", "paid", "failed", "total_amount")
    changes = {
        name: (getattr(old, name), getattr(new, name))
        for name in names
        if getattr(old, name) != getattr(new, name)
    }
    await _trail.record(tx, actor, after.public_id, action, changes=changes)
    return after


async def _record(tx: Transaction, actor: Actor, action: str, batch: Batch, **fields: Any) -> None:
    changes = {name: (None, value) for name, value in fields.items()}
    await _trail.record(tx, actor, batch.public_id, action, changes=changes)
