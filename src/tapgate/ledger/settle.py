"""The end of a review: release or reject a transaction whose funds are held."""

from tapgate.errors import Code
from tapgate.ledger import chart, commission
from tapgate.ledger.checks import not_active, over_max_balance
from tapgate.ledger.commands import Answer, Outcome, Settlement, outcome_of
from tapgate.ledger.state import (
    Account,
    Change,
    Decision,
    Earned,
    Hold,
    Posting,
    Recorded,
    State,
    Usage,
)


def settle(state: State, settlement: Settlement) -> Decision:
    row = state.recorded.get(settlement.transaction_id)
    if row is None:
        return Decision(outcome=Outcome(None, Code.TRANSACTION_NOT_FOUND))
    if row.status != "under_review":
        return Decision(outcome=Outcome(None, Code.ALREADY_RESOLVED))
    assert row.from_account is not None
    payer = state.accounts[row.from_account]
    payee = state.accounts[row.to_account]
    failure = _obstacle(state, row, payee) if settlement.release else Code.COMPLIANCE_REJECTED
    if failure is not None:
        return _give_back(row, payer, failure)
    return _complete(state, row, payer, payee)


def _obstacle(state: State, row: Recorded, payee: Account) -> Code | None:
    card = state.cards.get(row.to_card_serial) if row.to_card_serial is not None else None
    credited = row.amount - (0 if _sender_paid(row) else row.fee_amount)
    objection = not_active(state, payee, card, "receiver") or over_max_balance(
        state, payee, credited
    )
    return objection.code if objection is not None else None


def _sender_paid(row: Recorded) -> bool:
    return row.held > row.amount


def _answer(
    row: Recorded, status: str, code: Code | None = None, commission_earned: int = 0
) -> Outcome:
    return outcome_of(
        Answer(
            transaction_id=row.id,
            status=status,
            amount=row.amount,
            fee=row.fee_amount,
            commission=commission_earned,
            details={"failure_code": str(code)} if code is not None else None,
        ),
        replayed=False,
    )


def _give_back(row: Recorded, payer: Account, code: Code) -> Decision:
    usage = None
    if row.usage_day is not None:
        usage = Usage(payer.id, row.card_serial, -row.amount, 0, row.usage_day)
    return Decision(
        outcome=_answer(row, "failed", code),
        hold=_let_go(row, payer),
        usage=usage,
        change=Change(row.id, "failed", failure_code=str(code)),
    )


def _complete(state: State, row: Recorded, payer: Account, payee: Account) -> Decision:
    postings = [Posting(payer.id, payee.id, row.amount)]
    if row.fee_amount:
        side = payer if _sender_paid(row) else payee
        fees = state.rules.platform_accounts[chart.FEES]
        postings.append(Posting(side.id, fees, row.fee_amount))
    earned = _earn(state, row, payer, payee) if row.type in chart.CASH_TYPES else None
    if earned is not None and earned.commission:
        postings.append(commission.posting(state, earned))
    return Decision(
        outcome=_answer(
            row, "completed", commission_earned=earned.commission if earned is not None else 0
        ),
        postings=tuple(postings),
        hold=_let_go(row, payer),
        change=Change(row.id, "completed", completes=True),
        earned=earned,
    )


def _earn(state: State, row: Recorded, payer: Account, payee: Account) -> Earned:
    """Commission is decided when the money moves, by the rules and matches of that time."""
    since = commission.window_start(row.created_at, state.now)
    return commission.earn(state, row.type, payer, payee, row.amount, since)


def _let_go(row: Recorded, payer: Account) -> Hold | None:
    return Hold(payer.id, -row.held) if payer.locked else None
