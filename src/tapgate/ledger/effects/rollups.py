"""Transaction counts and volumes per 15-minute bucket, updated by each batch.

A batch updates only a few rows, in the database transaction that writes its transactions, so the
rollups always agree with the transactions. `tapgate verify` checks this. Each process has its own
rows (its slot), so that processes do not wait for each other. The cost of reading does not depend
on the number of transactions.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from tapgate.ledger import chart
from tapgate.ledger.decisions.state import Decision, State

ON_CONFLICT_ADD: Final = """
    ON CONFLICT (quarter, type, outcome, failure_code, slot) DO UPDATE
    SET count = figures.count + excluded.count, amount = figures.amount + excluded.amount,
        fees = figures.fees + excluded.fees"""


class RollupKey(NamedTuple):
    bucket_start: datetime
    type: str
    outcome: str
    failure_code: str | None


def get_bucket_start(moment: datetime) -> datetime:
    """Return the start of the 15-minute bucket that contains a time.

    Buckets last 15 minutes because some UTC offsets, such as +05:45, are not whole or half hours.
    """
    return moment.replace(minute=moment.minute // 15 * 15, second=0, microsecond=0)


def build_rollup_rows(state: State, decisions: Sequence[Decision]) -> list[tuple[Any, ...]]:
    """Return what a batch adds to the rollups, with one row per distinct key.

    Sorted to avoid deadlocks: after 1,024 process starts, two processes can have the same slot.
    """
    totals: dict[RollupKey, list[int]] = {}
    for key, sign, amount, fee in _iter_changes(state, decisions):
        total = totals.get(key)
        if total is None:
            total = totals[key] = [0, 0, 0]
        total[0] += sign
        total[1] += sign * amount
        total[2] += sign * fee
    keys = sorted(totals, key=lambda key: (*key[:3], key.failure_code or ""))
    return [(*key, *totals[key]) for key in keys]


def _iter_changes(
    state: State, decisions: Sequence[Decision]
) -> Iterator[tuple[RollupKey, int, int, int]]:
    """Yield (key, +1 or -1, amount, fee) for every new transaction and every review decision."""
    bucket_start = get_bucket_start(state.now)
    for decision in decisions:
        new = decision.transaction
        if new is not None:
            # A refund is a separate transaction; the refunded payment stays counted as completed.
            yield (
                RollupKey(bucket_start, new.type, new.status, new.failure_code),
                1,
                new.amount,
                new.fee_amount,
            )
        elif (change := decision.change) is not None:
            row = state.transactions[change.transaction_id]
            original_start = get_bucket_start(row.created_at)
            old_key = RollupKey(original_start, row.type, chart.UNDER_REVIEW, None)
            new_key = RollupKey(original_start, row.type, change.status, change.failure_code)
            yield old_key, -1, row.amount, row.fee_amount
            yield new_key, 1, row.amount, row.fee_amount
