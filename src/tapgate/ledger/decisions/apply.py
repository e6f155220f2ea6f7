"""Applies decisions to a batch's in-memory state."""

from tapgate.ledger import chart
from tapgate.ledger.commands import PayoutChange
from tapgate.ledger.decisions.state import (
    Account,
    Decision,
    EarnedCommission,
    NewTransaction,
    Posting,
    State,
    StoredTransaction,
    TransactionChange,
    UsageChange,
)
from tapgate.ledger.idempotency.replays import PriorRequest
from tapgate.ledger.rules.commission import CashMovement
from tapgate.ledger.rules.compliance import get_subject_accounts


def apply_decision(state: State, decision: Decision) -> None:
    """Apply a decision to the state, so that later decisions in the batch see its effects."""
    _apply_money(state, decision)
    if decision.usage is not None:
        _apply_usage(state, decision.usage)
    if decision.consumed_tap is not None:
        card = state.cards[decision.consumed_tap.card_serial]
        card.last_counter = decision.consumed_tap.counter
        card.is_changed = True
    for pin in decision.pin_updates:
        state.pins[pin.holder_id] = pin
        state.changed_pin_holders.add(pin.holder_id)
    if decision.wrong_pin_account_id is not None:
        _count_wrong_pin(state, decision.wrong_pin_account_id)
    if decision.change is not None:
        _apply_change(state, decision.change)
    if decision.payout_change is not None:
        _apply_payout_change(state, decision.payout_change)
    if decision.batch_line is not None:
        state.payable_lines.discard(decision.batch_line.line)
    if decision.transaction is not None:
        _add_transaction(state, decision.transaction)
    if decision.earned_commission is not None:
        _apply_cash_matches(state, decision.earned_commission, decision)
    if decision.cash_shares:
        _apply_cash_shares(state, decision)
    if decision.recall is not None:
        recall = decision.recall.recall
        state.recalls[recall.transaction_id] = recall


def _apply_money(state: State, decision: Decision) -> None:
    for posting in decision.postings:
        _apply_posting(state, posting)
    if decision.hold is not None:
        account = state.accounts[decision.hold.account_id]
        account.held += decision.hold.amount
        account.is_changed = True


def _count_wrong_pin(state: State, account_id: int) -> None:
    for rule in state.rules.pin_failure_rules:
        key = (rule.id, account_id)
        state.wrong_pin_counts[key] = state.wrong_pin_counts.get(key, 0) + 1


def _apply_payout_change(state: State, change: PayoutChange) -> None:
    payout = state.payouts[change.payout_id]
    payout.status = change.status
    payout.bank_reference = change.bank_reference or payout.bank_reference
    payout.return_reason = change.return_reason
    payout.is_changed = True


def _apply_posting(state: State, posting: Posting) -> None:
    for account_id, amount in ((posting.debit, -posting.amount), (posting.credit, posting.amount)):
        account = state.accounts[account_id]
        account.balance += amount
        account.delta += amount
        account.is_changed = True


def _apply_usage(state: State, usage: UsageChange) -> None:
    state.accounts[usage.account_id].add_usage(usage.amount, usage.counted_on, state.today)
    card = state.cards.get(usage.card_serial) if usage.card_serial else None
    if card is not None and (card.daily_limit is not None or usage.unpinned):
        card.add_usage(usage.amount, usage.unpinned, usage.counted_on, state.today)


def _set_balances(state: State, row: NewTransaction | StoredTransaction) -> None:
    """Set a transaction's `from_balance` and `to_balance` to the balances after it.

    For a credit-only payee, set `to_balance_offset` instead. Platform account balances are not
    recorded.
    """
    if row.from_account is None or row.to_account is None:
        return
    payer, payee = state.accounts[row.from_account], state.accounts[row.to_account]
    if payer.is_locked:
        row.from_balance = payer.balance
    if payee.is_locked:
        row.to_balance = payee.balance
    elif payee.kind == chart.SETTLEMENT:
        row.to_balance_offset = payee.delta


def _apply_change(state: State, change: TransactionChange) -> None:
    row = state.transactions[change.transaction_id]
    row.status = change.status
    row.refunded_amount += change.refunded_amount
    row.failure_code = change.failure_code
    row.is_changed = True
    if change.status == chart.FAILED:
        _remove_from_windows(state, row)
    if change.is_completion:
        row.completed_at = state.now
        _set_balances(state, row)


def _add_transaction(state: State, row: NewTransaction) -> None:
    if row.status == chart.COMPLETED:
        _set_balances(state, row)
    if row.idempotency_key is not None:
        key = (row.idempotency_key.scope, row.idempotency_key.request_id)
        state.prior_requests[key] = PriorRequest(
            row.idempotency_key.fingerprint, row.to_account, row.amount, row.result
        )
    if row.status == chart.FAILED:
        return
    if row.reference is not None:
        state.prior_references[row.reference.partner_id, row.reference.reference] = PriorRequest(
            None, row.to_account, row.amount, row.result
        )
    if row.from_account is None or row.to_account is None:
        return
    _add_to_windows(state, row, state.accounts[row.from_account], state.accounts[row.to_account])


def _add_to_windows(state: State, row: NewTransaction, payer: Account, payee: Account) -> None:
    """Count a transaction in the time windows of all applicable compliance rules."""
    for subject, rules in state.rules.screening.get(row.type, {}).items():
        for account in get_subject_accounts(subject, payer, payee):
            for rule in rules:
                if rule.window_seconds is not None:
                    key = (rule.id, account.id)
                    count, total = state.window_totals.get(key, (0, 0))
                    state.window_totals[key] = (count + 1, total + row.amount)


def _remove_from_windows(state: State, row: StoredTransaction) -> None:
    """Remove a failed transaction from the time windows that counted it during its review."""
    payer = state.accounts.get(row.from_account or 0)
    for subject, rules in state.rules.screening.get(row.type, {}).items():
        for account in get_subject_accounts(subject, payer, state.accounts[row.to_account]):
            for rule in rules:
                totals = state.window_totals.get((rule.id, account.id))
                if totals is not None and rule.covers(row.created_at, state.now):
                    count, total = totals
                    state.window_totals[rule.id, account.id] = (count - 1, total - row.amount)


def _apply_cash_matches(state: State, earned: EarnedCommission, decision: Decision) -> None:
    """Apply a cash movement, its matches and the agent's commission remainder to the state."""
    agent = state.agents[earned.agent_id]
    agent.is_changed |= agent.commission_remainder != earned.remainder
    agent.commission_remainder = earned.remainder
    for movement, amount in earned.matches:
        movement.unmatched -= amount
    row = decision.transaction or state.transactions[decision.transaction_id]
    # Only the returned (matched) part of a cash-in can be matched with a later cash-out.
    returned = sum(match.amount for match in earned.matches)
    unmatched = row.amount if row.type == chart.AGENT_CASHOUT else returned
    state.cash_movements.setdefault(earned.pair, []).append(
        CashMovement(row.id, row.type, state.now, unmatched)
    )


def _apply_cash_shares(state: State, decision: Decision) -> None:
    """Apply what a reversal changes for later matches."""
    shares = dict(decision.cash_shares)
    for movements in state.cash_movements.values():
        for movement in movements:
            movement.unmatched -= shares.get(movement.transaction_id, 0)
