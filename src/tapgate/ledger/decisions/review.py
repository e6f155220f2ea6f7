"""Review decisions: release or reject a transaction that is under review."""

import msgspec

from tapgate.ledger import chart
from tapgate.ledger.commands import Outcome, ReviewDecision, TransactionResult, build_outcome
from tapgate.ledger.decisions import batch_lines, earned_commission
from tapgate.ledger.decisions.checks import check_active, check_max_balance
from tapgate.ledger.decisions.state import (
    Account,
    Decision,
    Hold,
    Posting,
    State,
    StoredTransaction,
    TransactionChange,
    UsageChange,
)
from tapgate_client.errors import Code


def decide_review(state: State, review: ReviewDecision) -> Decision:
    decision = _decide_review(state, review)
    line = state.held_lines.get(review.transaction_id)
    if line is None or decision.change is None:
        return decision
    result = batch_lines.build_review_result(line, decision.change, decision.outcome)
    return msgspec.structs.replace(decision, batch_line=result)


def _decide_review(state: State, review: ReviewDecision) -> Decision:
    row = state.transactions.get(review.transaction_id)
    if row is None:
        return Decision(outcome=Outcome(None, Code.TRANSACTION_NOT_FOUND))
    if row.status != chart.UNDER_REVIEW:
        return Decision(outcome=Outcome(None, Code.ALREADY_RESOLVED))
    assert row.from_account is not None
    payer = state.accounts[row.from_account]
    payee = state.accounts[row.to_account]
    error_code = (
        _find_release_error(state, row, payee) if review.release else Code.COMPLIANCE_REJECTED
    )
    if error_code is not None:
        return _return_funds(row, payer, error_code)
    return _release_funds(state, row, payer, payee)


def _find_release_error(state: State, row: StoredTransaction, payee: Account) -> Code | None:
    card = state.cards.get(row.to_card_serial) if row.to_card_serial is not None else None
    credited_amount = row.amount - (0 if _is_fee_paid_by_sender(row) else row.fee_amount)
    rejection = check_active(state, payee, card, "receiver") or check_max_balance(
        state, payee, credited_amount
    )
    return rejection.code if rejection is not None else None


def _is_fee_paid_by_sender(row: StoredTransaction) -> bool:
    return row.held > row.amount


def _build_review_outcome(
    row: StoredTransaction, status: str, code: Code | None = None, commission_earned: int = 0
) -> Outcome:
    return build_outcome(
        TransactionResult(
            transaction_id=row.id,
            status=status,
            amount=row.amount,
            fee=row.fee_amount if status == chart.COMPLETED else 0,
            commission=commission_earned,
            details={"failure_code": str(code)} if code is not None else None,
        ),
        replayed=False,
    )


def _return_funds(row: StoredTransaction, payer: Account, code: Code) -> Decision:
    usage = None
    if row.usage_day is not None:
        unpinned = -row.amount if row.is_unpinned else 0
        usage = UsageChange(payer.id, row.card_serial, -row.amount, unpinned, row.usage_day)
    return Decision(
        outcome=_build_review_outcome(row, chart.FAILED, code),
        hold=_release_hold(row, payer),
        usage=usage,
        change=TransactionChange(row.id, chart.FAILED, failure_code=str(code)),
    )


def _release_funds(
    state: State, row: StoredTransaction, payer: Account, payee: Account
) -> Decision:
    postings = [Posting(payer.id, payee.id, row.amount)]
    if row.fee_amount:
        fee_account = payer if _is_fee_paid_by_sender(row) else payee
        fees_account_id = state.rules.platform_accounts[chart.FEES]
        postings.append(Posting(fee_account.id, fees_account_id, row.fee_amount))
    earned = None
    if row.type in chart.CASH_TYPES:
        earned = earned_commission.earn_commission(
            state, row.type, payer, payee, row.amount, row.created_at
        )
    if earned is not None and earned.amount:
        postings.append(earned_commission.build_posting(state, earned))
    return Decision(
        outcome=_build_review_outcome(
            row, chart.COMPLETED, commission_earned=earned.amount if earned is not None else 0
        ),
        postings=tuple(postings),
        hold=_release_hold(row, payer),
        change=TransactionChange(row.id, chart.COMPLETED, is_completion=True),
        earned_commission=earned,
    )


def _release_hold(row: StoredTransaction, payer: Account) -> Hold | None:
    return Hold(payer.id, -row.held) if payer.is_locked else None
