"""Decision on a command, without any I/O.

`decide` returns plain data and does not change the state. A replay gets the original outcome.
A new command is accepted if all checks pass; otherwise, the first failing check determines the
outcome.
"""

from collections.abc import Callable
from datetime import date

import msgspec

from tapgate.ledger import chart
from tapgate.ledger.card_proofs.rejected_taps import RejectedTap, build_rejected_tap
from tapgate.ledger.commands import (
    Command,
    Outcome,
    TransactionResult,
    build_outcome,
)
from tapgate.ledger.decisions import batch_lines, earned_commission, payouts
from tapgate.ledger.decisions.checks import CHECKS
from tapgate.ledger.decisions.context import CommandContext, Rejection, build_context
from tapgate.ledger.decisions.state import (
    Account,
    ConsumedTap,
    Decision,
    EarnedCommission,
    Hold,
    NewTransaction,
    Posting,
    State,
    TransactionChange,
    UsageChange,
)
from tapgate.ledger.idempotency.replays import find_replayed_reference, find_replayed_request
from tapgate.ledger.pins.pin_lockout import PinMatcher
from tapgate.ledger.pins.wrong_pin_limit import WrongPinLimit
from tapgate.ledger.rules.compliance import RuleMatch, find_wrong_pin_matches
from tapgate.ledger.rules.fees import SENDER
from tapgate_client.errors import Code


def decide(
    state: State,
    command: Command,
    is_correct_pin: PinMatcher,
    new_id: Callable[[], int],
    wrong_pin_limit: WrongPinLimit | None = None,
) -> Decision:
    context = build_context(state, command, is_correct_pin, wrong_pin_limit)
    decision = _decide(context, new_id)
    line = command.batch_line
    if line is not None and line in state.payable_lines:
        result = batch_lines.build_result(line, decision.outcome)
        decision = msgspec.structs.replace(decision, batch_line=result)
    if not command.checks_restriction:
        return decision
    is_restricted = context.payee is not None and context.payee.id in state.restricted_accounts
    outcome = msgspec.structs.replace(decision.outcome, is_payee_restricted=is_restricted)
    return msgspec.structs.replace(decision, outcome=outcome)


def _decide(context: CommandContext, new_id: Callable[[], int]) -> Decision:
    replay = _find_replay(context)
    if replay is not None:
        return Decision(outcome=replay)
    for check in CHECKS:
        rejection = check(context)
        if rejection is None:
            continue
        if rejection.is_decline and context.amount:
            return _decline(context, rejection, new_id())
        return _reject(context, rejection)
    return _accept(context, new_id())


def _find_replay(context: CommandContext) -> Outcome | None:
    """Return a replay's original outcome, a conflict, or None for a new request."""
    command, state = context.command, context.state
    if command.idempotency_key is not None:
        outcome = find_replayed_request(state.prior_requests, command.idempotency_key)
        if outcome is not None:
            return outcome
    if command.reference is None:
        return None
    payee_id = None if context.payee is None else context.payee.id
    return find_replayed_reference(
        state.prior_references, command.reference, payee_id, context.amount
    )


def _reject(context: CommandContext, rejection: Rejection) -> Decision:
    outcome = Outcome(None, rejection.code, rejection.details)
    wallet = context.wrong_pin_account
    if wallet is None or wallet.owner_id is None:
        return Decision(
            outcome=outcome,
            pin_updates=tuple(context.pin_updates),
            wrong_pin=context.wrong_pin,
            rejected_tap=_build_rejected_tap(context, rejection),
        )
    pin_rules = context.state.rules.pin_failure_rules
    failure_counts = {
        (rule.id, wallet.id): context.state.wrong_pin_counts.get((rule.id, wallet.id), 0) + 1
        for rule in pin_rules
    }
    return Decision(
        outcome=outcome,
        pin_updates=tuple(context.pin_updates),
        wrong_pin=context.wrong_pin,
        wrong_pin_account_id=wallet.id,
        matches=tuple(
            find_wrong_pin_matches(pin_rules, failure_counts, wallet.id, wallet.owner_id)
        ),
    )


def _build_rejected_tap(context: CommandContext, rejection: Rejection) -> RejectedTap | None:
    command, payee = context.command, context.payee
    if command.card_proof is None:
        return None
    return build_rejected_tap(
        rejection.code,
        command.card_proof,
        context.payer_card,
        subscriber_id=context.payer.owner_id if context.payer is not None else None,
        processor_id=payee.owner_id if payee is not None else None,
        terminal_id=(command.context or {}).get("terminal_id"),
    )


def _build_consumed_tap(context: CommandContext) -> ConsumedTap | None:
    proof, card = context.command.card_proof, context.payer_card
    if proof is None or proof.counter is None or card is None:
        return None
    return ConsumedTap(card.serial, proof.counter)


def _decline(context: CommandContext, rejection: Rejection, transaction_id: int) -> Decision:
    result = TransactionResult(
        transaction_id=transaction_id,
        status=chart.FAILED,
        amount=context.amount,
        fee=0,
        code=str(rejection.code),
        details=rejection.details,
        original_id=context.command.original_id,
    )
    # A blocked transaction raises alerts only for the rules that block it. Other declines raise no
    # alerts.
    if rejection.code == Code.COMPLIANCE_REJECTED:
        context.matches = [match for match in context.matches if match.rule.action == "block"]
    else:
        context.matches = []
    return Decision(
        outcome=build_outcome(result, replayed=False),
        transaction=_build_transaction(context, result, held=0, counted_on=None),
        pin_updates=tuple(context.pin_updates),
        matches=_assign_matches(context, transaction_id),
        consumed_tap=_build_consumed_tap(context),
    )


def _accept(context: CommandContext, transaction_id: int) -> Decision:
    payer, payee = context.payer, context.payee
    assert payer is not None
    assert payee is not None
    needs_review = bool(context.matches) and any(match.needs_review for match in context.matches)
    earned = None
    if not needs_review and context.command.type in chart.CASH_TYPES:
        earned = earned_commission.earn_commission(
            context.state, context.command.type, payer, payee, context.amount, context.state.now
        )
    result = _build_result(context, payer, payee, transaction_id, earned, needs_review=needs_review)
    usage, counted_on = None, None
    if context.counts_toward_limits:
        unpinned = context.amount if context.command.payer_pin is None else 0
        serial = context.payer_card.serial if context.payer_card is not None else None
        counted_on = max(context.state.today, payer.usage_day or context.state.today)
        usage = UsageChange(payer.id, serial, context.amount, unpinned, counted_on)
    change = None
    original = context.original
    if original is not None:
        is_fully_refunded = original.refunded_amount + context.amount == original.amount
        change = TransactionChange(
            original.id,
            chart.REFUNDED if is_fully_refunded else chart.PARTIALLY_REFUNDED,
            refunded_amount=context.amount,
        )
        if original.usage_day is not None:
            usage = UsageChange(
                payee.id, original.card_serial, -context.amount, 0, original.usage_day
            )
    held = context.total_debit if needs_review else 0
    transaction = _build_transaction(context, result, held=held, counted_on=counted_on)
    if needs_review and usage is not None and usage.unpinned and usage.card_serial is not None:
        # A rejection restores the no-PIN allowance, and the PIN is not stored otherwise.
        transaction.context = {**(transaction.context or {}), "unpinned": True}
    return Decision(
        outcome=build_outcome(result, replayed=False),
        transaction=transaction,
        postings=() if needs_review else _build_postings(context, payer, payee, earned),
        # Platform accounts are never locked and cannot run short, so they need no hold.
        hold=Hold(payer.id, held) if needs_review and payer.is_locked else None,
        usage=usage,
        pin_updates=tuple(context.pin_updates),
        change=change,
        matches=_assign_matches(context, transaction_id),
        earned_commission=earned,
        consumed_tap=_build_consumed_tap(context),
        new_payout=context.command.payout,
        payout_change=context.command.payout_change,
        book_transfer=context.command.book_transfer,
    )


def _build_result(
    context: CommandContext,
    payer: Account,
    payee: Account,
    transaction_id: int,
    earned: EarnedCommission | None,
    *,
    needs_review: bool,
) -> TransactionResult:
    debited = context.total_debit - context.refunded_fee
    refundable_amount = None
    if context.original is not None:
        refundable_amount = (
            context.original.amount - context.original.refunded_amount - context.amount
        )
    payee_available = None
    if payee.is_locked:
        credited = context.credited_amount + payouts.get_returned_fee(context)
        payee_available = payee.available + (0 if needs_review else credited)
    return TransactionResult(
        transaction_id=transaction_id,
        status=chart.UNDER_REVIEW if needs_review else chart.COMPLETED,
        amount=context.amount,
        fee=context.fee,
        payer_available=payer.available - debited if payer.is_locked else None,
        payee_available=payee_available,
        commission=earned.amount if earned is not None else 0,
        refundable_amount=refundable_amount,
        payee_name=payee.public_name,
        original_id=context.command.original_id,
        fee_refunded=context.refunded_fee if context.original is not None else None,
    )


def _build_postings(
    context: CommandContext, payer: Account, payee: Account, earned: EarnedCommission | None
) -> tuple[Posting, ...]:
    platform_accounts = context.state.rules.platform_accounts
    postings = [Posting(payer.id, payee.id, context.amount)]
    if context.fee:
        fee_account = payer if context.fee_payer == SENDER else payee
        postings.append(Posting(fee_account.id, platform_accounts[chart.FEES], context.fee))
    if earned is not None and earned.amount:
        postings.append(earned_commission.build_posting(context.state, earned))
    if context.refunded_fee:
        # Return the fee first, so that the processor's balance covers the full refund.
        postings.insert(0, Posting(platform_accounts[chart.FEES], payer.id, context.refunded_fee))
    if returned_fee := payouts.get_returned_fee(context):
        postings.append(Posting(platform_accounts[chart.FEES], payee.id, returned_fee))
    return tuple(postings)


def _build_transaction(
    context: CommandContext, result: TransactionResult, *, held: int, counted_on: date | None
) -> NewTransaction:
    command, payer, payee = context.command, context.payer, context.payee
    return NewTransaction(
        id=result.transaction_id,
        type=command.type,
        status=result.status,
        channel=command.channel,
        amount=context.amount,
        fee_amount=result.fee,
        from_account=payer.id if payer is not None else None,
        to_account=payee.id if payee is not None else None,
        held=held,
        card_serial=context.payer_card.serial if context.payer_card is not None else None,
        to_card_serial=context.payee_card.serial if context.payee_card is not None else None,
        original_id=command.original_id
        if context.payout is None
        else context.payout.transaction_id,
        usage_day=counted_on,
        idempotency_key=command.idempotency_key,
        reference=command.reference,
        failure_code=result.code,
        context=command.context,
        result=result,
    )


def _assign_matches(context: CommandContext, transaction_id: int) -> tuple[RuleMatch, ...]:
    if not context.matches:
        return ()
    return tuple(match._replace(transaction_id=transaction_id) for match in context.matches)
