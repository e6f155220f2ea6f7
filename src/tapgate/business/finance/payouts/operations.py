"""Payout runs, schedules, and the rows that commit with a payout's ledger command."""

from typing import Any, Final

from msgspec.structs import replace

from tapgate.auth.actors import Actor
from tapgate.business.finance.bank_accounts import queries as bank_accounts
from tapgate.business.finance.bank_accounts.model import BankAccount
from tapgate.business.finance.payouts import queries
from tapgate.business.finance.payouts.model import PayoutRun, StoredSchedule, to_record, to_schedule
from tapgate.events.audit.trail import AuditTrail
from tapgate.events.webhooks.webhook_events import publish
from tapgate.ledger.commands import Command, ScopedIdempotencyKey
from tapgate.runtime.store.rows import insert_values
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids, money
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.bank_accounts import BankAccountOwner
from tapgate_client.schemas.payouts import PayoutSchedule, PayoutStatus

_trail: Final = AuditTrail("payout")
_run_trail: Final = AuditTrail("payout_run")
_schedule_trail: Final = AuditTrail("payout_schedule")
#: Serializes runs with the same idempotency key, and two runs of the same payouts.
_RUN_LOCK_KEY: Final = 0x7467_7072  # "tgpr"


async def record_command(tx: Transaction, actor: Actor, command: Command) -> None:
    """Write the audit entry and the event of a payout that the ledger has just stored."""
    change = command.payout_change
    if command.payout is None and change is None:
        return
    payout_id = change.payout_id if change is not None else command.payout.id  # type: ignore[union-attr]
    record = to_record(await queries.get(tx, payout_id))
    changes: dict[str, tuple[Any, Any]] = {"status": (None, record.status)}
    if change is None:
        changes |= {"owner_id": (None, record.owner_id), "amount": (None, record.amount)}
    await _trail.record(
        tx, actor, record.id, str(record.status), reason=record.return_reason, changes=changes
    )
    await publish(tx, f"payout.{record.status}", record)


async def create_run(
    tx: Transaction,
    actor: Actor,
    *,
    owner_type: str | None,
    admin_id: int,
    currency: str,
    key: ScopedIdempotencyKey | None,
) -> tuple[PayoutRun, bool]:
    """Mark requested payouts as submitted; return the run, and whether it is a replay.

    Payouts to accounts that are no longer verified are left out.
    """
    await tx.execute("SELECT pg_advisory_xact_lock($1)", _RUN_LOCK_KEY)
    if key is not None and (run := await _find_replay(tx, key)) is not None:
        return run, True
    source = await _get_source(tx)
    payouts = await _lock_requested(tx, owner_type)
    run_id = tx.new_id()
    await insert_values(
        tx,
        "payout_runs",
        id=run_id,
        owner_type=owner_type,
        bank_account_id=source.id,
        payouts=len(payouts),
        total=sum(payouts.values()),
        currency=currency,
        created_by=admin_id,
        created_at=tx.now(),
        scope=key and key.scope,
        request_id=key and key.request_id,
        fingerprint=key and key.fingerprint,
        debtor={
            "name": source.holder_name,
            "bank_code": source.bank_code,
            "number": source.number,
        },
    )
    await tx.execute(
        """UPDATE payouts SET status = $2, run_id = $3, updated_at = $4
           WHERE id = ANY ($1::bigint[])""",
        [*payouts],
        PayoutStatus.SUBMITTED,
        run_id,
        tx.now(),
    )
    run = await queries.get_run(tx, run_id)
    total = money.format_decimal(run.total, currency)
    changes = {"payouts": (None, run.payouts), "total": (None, total)}
    await _run_trail.record(
        tx, actor, ids.encode(ids.PAYOUT_RUN, run_id), "created", changes=changes
    )
    return run, False


async def _get_source(tx: Transaction) -> BankAccount:
    """Return the platform account that payouts are paid from."""
    sources = await bank_accounts.list_verified(tx, BankAccountOwner.PLATFORM, None)
    if not sources:
        raise ApiError(
            Code.BANK_ACCOUNT_NOT_VERIFIED, "The platform has no verified bank account to pay from."
        )
    return sources[0]


async def _lock_requested(tx: Transaction, owner_type: str | None) -> dict[int, int]:
    """Lock the requested payouts to verified accounts. Return the amounts by payout ID."""
    rows = await tx.fetch(
        """SELECT p.id, p.amount FROM payouts p JOIN bank_accounts b ON b.id = p.bank_account_id
           WHERE p.status = 'requested' AND b.status = 'verified'
             AND ($1::text IS NULL OR p.owner_type = $1)
           ORDER BY p.id FOR NO KEY UPDATE OF p""",
        owner_type,
    )
    if not rows:
        raise ApiError(Code.PAYOUT_NOT_PENDING, "No payout waits for a run.")
    return {row["id"]: row["amount"] for row in rows}


async def _find_replay(tx: Transaction, key: ScopedIdempotencyKey) -> PayoutRun | None:
    row = await tx.fetchrow(
        "SELECT id, fingerprint FROM payout_runs WHERE scope = $1 AND request_id = $2",
        key.scope,
        key.request_id,
    )
    if row is None:
        return None
    if row["fingerprint"] != key.fingerprint:
        raise ApiError(Code.DUPLICATE_REQUEST)
    run = await queries.get_run(tx, row["id"])
    # The payouts may have been paid or returned since.
    return replace(run, submitted=run.payouts, paid=0, returned=0)


async def record_download(tx: Transaction, actor: Actor, run_id: int, file_format: str) -> None:
    await _run_trail.record(
        tx,
        actor,
        ids.encode(ids.PAYOUT_RUN, run_id),
        "downloaded",
        changes={"format": (None, file_format)},
    )


async def set_schedule(
    tx: Transaction,
    actor: Actor,
    processor_id: int,
    schedule: PayoutSchedule,
    *,
    admin_id: int,
    currency: str,
) -> StoredSchedule:
    # A new schedule takes effect with the next day that is closed.
    before = to_schedule(await queries.find_schedule(tx, processor_id), currency)
    await tx.execute(
        """INSERT INTO payout_schedules
               (processor_id, interval, minimum, reserve_percent, updated_by, updated_at, last_day)
           VALUES ($1, $2, $3, $4, $5, $6, (SELECT max(day) FROM closed_days))
           ON CONFLICT (processor_id) DO UPDATE
           SET interval = excluded.interval, minimum = excluded.minimum,
               reserve_percent = excluded.reserve_percent, updated_by = excluded.updated_by,
               updated_at = excluded.updated_at,
               last_day = greatest(payout_schedules.last_day, excluded.last_day)""",
        processor_id,
        schedule.interval,
        money.parse(schedule.minimum, currency, allow_zero=True),
        schedule.reserve_percent,
        admin_id,
        tx.now(),
    )
    stored = await queries.find_schedule(tx, processor_id)
    assert stored is not None
    await _schedule_trail.record_change(
        tx,
        actor,
        ids.encode(ids.PROCESSOR, processor_id),
        "updated",
        before,
        to_schedule(stored, currency),
    )
    return stored
