"""Results of batch lines, written together with the ledger's decision on them."""

from tapgate.ledger import chart
from tapgate.ledger.commands import BatchLine, Outcome
from tapgate.ledger.decisions.state import BatchLineResult, TransactionChange
from tapgate_client.schemas.batches import BatchLineStatus


def build_result(line: BatchLine, outcome: Outcome) -> BatchLineResult:
    """Return the result of the command that pays a line."""
    result, code = outcome.result, outcome.code
    transaction_id = None if result is None else result.transaction_id
    if code is not None or result is None:
        return BatchLineResult(line, BatchLineStatus.FAILED, code and str(code), transaction_id)
    if result.status == chart.UNDER_REVIEW:
        return BatchLineResult(line, BatchLineStatus.PENDING, None, transaction_id)
    return BatchLineResult(line, BatchLineStatus.PAID, None, transaction_id, result.amount)


def build_review_result(
    line: BatchLine, change: TransactionChange, outcome: Outcome
) -> BatchLineResult:
    """Return the result of a line whose transaction was under review."""
    if not change.is_completion:
        code = change.failure_code
        return BatchLineResult(line, BatchLineStatus.FAILED, code, change.transaction_id)
    assert outcome.result is not None
    amount = outcome.result.amount
    return BatchLineResult(line, BatchLineStatus.PAID, None, change.transaction_id, amount)
