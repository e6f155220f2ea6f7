"""Lines of batches (credits to many wallets) that a ledger batch pays.

A line's status and the counters of its batch are written in the database transaction that pays the
line. They therefore always agree with the ledger, whichever process is killed, and a line is paid
once even if several processes pay the same batch.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from tapgate.ledger.commands import BatchLine
from tapgate.ledger.decisions.state import BatchLineResult, Decision, State
from tapgate.ledger.engine.batch_keys import BatchKeys
from tapgate_client.schemas.batches import BatchLineStatus


async def lock_batches(tx: Any, keys: BatchKeys) -> None:
    """Lock the rows of batches, before all accounts, and load the lines that may be paid.

    A canceled batch has no such lines: a cancellation takes the same lock.
    """
    batch_ids = {line.batch_id for line in keys.batch_lines}
    if keys.reviewed_ids:
        batch_ids |= await _find_reviewed(tx, keys.reviewed_ids)
    if not batch_ids:
        return
    await tx.execute(
        "SELECT FROM batches WHERE id = ANY ($1::bigint[]) ORDER BY id FOR NO KEY UPDATE",
        sorted(batch_ids),
    )
    # A later statement sees everything that was committed under the locks.
    if keys.batch_lines:
        keys.payable_lines = await _load_payable(tx, keys.batch_lines)
    if keys.reviewed_ids:
        keys.held_lines = await _load_held(tx, keys.reviewed_ids)


async def _find_reviewed(tx: Any, transaction_ids: Collection[int]) -> set[int]:
    return {line.batch_id for line in (await _load_held(tx, transaction_ids)).values()}


async def _load_payable(tx: Any, lines: Collection[BatchLine]) -> set[BatchLine]:
    rows = await tx.fetch(
        """SELECT batch_id, row
           FROM unnest($1::bigint[], $2::bigint[]) AS requested (batch_id, row)
           JOIN batch_lines line USING (batch_id, row) JOIN batches ON batches.id = batch_id
           WHERE batches.status = 'running' AND line.status = 'pending'
             AND line.transaction_id IS NULL""",
        [line.batch_id for line in lines],
        [line.row for line in lines],
    )
    return {BatchLine(*row) for row in rows}


async def _load_held(tx: Any, transaction_ids: Collection[int]) -> dict[int, BatchLine]:
    rows = await tx.fetch(
        """SELECT transaction_id, batch_id, row FROM batch_lines
           WHERE transaction_id = ANY ($1::bigint[]) AND status = 'pending'""",
        list(transaction_ids),
    )
    return {row["transaction_id"]: BatchLine(row["batch_id"], row["row"]) for row in rows}


async def write_batch_lines(tx: Any, state: State, decisions: Sequence[Decision]) -> None:
    """Store the results of lines, and count them."""
    results = [decision.batch_line for decision in decisions if decision.batch_line is not None]
    if not results:
        return
    await tx.execute(
        """UPDATE batch_lines line
           SET status = new.status, code = new.code, transaction_id = new.transaction_id
           FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[])
             AS new (batch_id, row, status, code, transaction_id)
           WHERE line.batch_id = new.batch_id AND line.row = new.row""",
        [result.line.batch_id for result in results],
        [result.line.row for result in results],
        [result.status for result in results],
        [result.code for result in results],
        [result.transaction_id for result in results],
    )
    await _count_results(tx, state, results)


async def _count_results(tx: Any, state: State, results: Sequence[BatchLineResult]) -> None:
    paid, failed, amounts = Counter[int](), Counter[int](), Counter[int]()
    for result in results:
        batch_id = result.line.batch_id
        paid[batch_id] += result.status == BatchLineStatus.PAID
        failed[batch_id] += result.status == BatchLineStatus.FAILED
        amounts[batch_id] += result.amount
    batch_ids = sorted(amounts)
    await tx.execute(
        """UPDATE batches SET paid = paid + new.newly_paid, failed = failed + new.newly_failed,
                  paid_amount = paid_amount + new.amount, updated_at = $5
           FROM unnest($1::bigint[], $2::integer[], $3::integer[], $4::bigint[])
             AS new (id, newly_paid, newly_failed, amount)
           WHERE batches.id = new.id""",
        batch_ids,
        [paid[batch_id] for batch_id in batch_ids],
        [failed[batch_id] for batch_id in batch_ids],
        [amounts[batch_id] for batch_id in batch_ids],
        state.now,
    )
