"""Business decision on a command, without any I/O.

`decide` takes the loaded state and one command, and returns plain data. The first failing check
determines the outcome.
"""

from collections.abc import Callable
from datetime import date

from tapgate.errors import Code
from tapgate.ledger import chart, commission
from tapgate.ledger.checks import CHECKS
from tapgate.ledger.commands import (
    Command,
    Outcome,
    ScopedIdempotencyKey,
    TransactionResult,
    build_outcome,
)
from tapgate.ledger.context import CommandContext, Rejection, build_context
from tapgate.ledger.pin_attempts import PinMatcher
from tapgate.ledger.screening import find_wrong_pin_matches
from tapgate.ledger.state import (
    Account,
    Decision,
    EarnedCommission,
    Hold,
    NewTransaction,
    Posting,
    RuleMatch,
    State,
    TransactionChange,
    UsageChange,
)


def decide(
    state: State, command: Command, is_right_pin: PinMatcher, new_id: Callable[[], int]
) -> Decision:
    case = build_context(state, command, is_right_pin)
    earlier = _find_replay(case)
    if earlier is not None:
        return Decision(outcome=earlier)
    for check in CHECKS:
        objection = check(case)
        if objection is None:
            continue
        if objection.is_decline and case.amount:
            return _decline(case, objection, new_id())
        return _reject(case, objection)
    return _accept(case, new_id())


def _find_replay(case: CommandContext) -> Outcome | None:
    """Return the original outcome of a replay, or a conflict if the key was used differently."""
    command = case.command
    if command.idempotency_key is not None:
        outcome = _find_replayed_request(case.state, command.idempotency_key)
        if outcome is not None:
            return outcome
    if command.reference is not None:
        reference = command.reference
        earlier = case.state.prior_references.get((reference.partner_id, reference.reference))
        if earlier is not None:
            same = case.payee is not None and earlier.to_account == case.payee.id
            if not same or earlier.amount != case.amount:
                return Outcome(None, Code.DUPLICATE_REFERENCE)
            return build_outcome(earlier.result, replayed=True)
    return None


def _find_replayed_request(state: State, request: ScopedIdempotencyKey) -> Outcome | None:
    """Return the replayed outcome or a conflict, or None if the key is new.

    The lookup may find several requests: before keys were scoped to their owner, each API key of an
    owner could use the same ID. A matching fingerprint is a replay; anything else is a conflict.
    """
    scopes = request.lookup_scopes or (request.scope,)
    found = [state.prior_requests.get((scope, request.request_id)) for scope in scopes]
    for earlier in found:
        if earlier is not None and earlier.fingerprint == request.fingerprint:
            return build_outcome(earlier.result, replayed=True)
    return Outcome(None, Code.DUPLICATE_REQUEST) if any(found) else None


def _reject(case: CommandContext, objection: Rejection) -> Decision:
    outcome = Outcome(None, objection.code, objection.details)
    wallet = case.wrong_pin_account
    if wallet is None or wallet.owner_id is None:
        return Decision(outcome=outcome, pin_updates=tuple(case.pin_updates))
    watches = case.state.rules.pin_failure_rules
    wrong_pins = {
        (rule.id, wallet.id): case.state.wrong_pin_counts.get((rule.id, wallet.id), 0) + 1
        for rule in watches
    }
    return Decision(
        outcome=outcome,
        pin_updates=tuple(case.pin_updates),
        wrong_pin_account_id=wallet.id,
        matches=tuple(find_wrong_pin_matches(watches, wrong_pins, wallet.id, wallet.owner_id)),
    )


def _decline(case: CommandContext, objection: Rejection, transaction_id: int) -> Decision:
    answer = TransactionResult(
        transaction_id=transaction_id,
        status="failed",
        amount=case.amount,
        fee=0,
        code=str(objection.code),
        details=objection.details,
        original_id=case.command.original_id,
    )
    # A transaction declined for another reason does not count as a match of any rule.
    if objection.code == Code.COMPLIANCE_REJECTED:
        case.matches = [match for match in case.matches if match.rule.action == "block"]
    else:
        case.matches = []
    return Decision(
        outcome=build_outcome(answer, replayed=False),
        transaction=_build_transaction(case, answer, held=0, counted_on=None),
        pin_updates=tuple(case.pin_updates),
        matches=_assign_matches(case, transaction_id),
    )


def _accept(case: CommandContext, transaction_id: int) -> Decision:
    payer, payee = case.payer, case.payee
    assert payer is not None
    assert payee is not None
    review = bool(case.matches) and any(match.needs_review for match in case.matches)
    earned = None
    if not review and case.command.type in chart.CASH_TYPES:
        earned = _earn_commission(case, payer, payee)
    answer = _build_result(case, payer, payee, transaction_id, earned, review=review)
    usage, counted_on = None, None
    if case.counts_toward_limits:
        unpinned = case.amount if case.command.payer_pin is None else 0
        serial = case.payer_card.serial if case.payer_card is not None else None
        counted_on = max(case.state.today, payer.usage_day or case.state.today)
        usage = UsageChange(payer.id, serial, case.amount, unpinned, counted_on)
    change = None
    original = case.original
    if original is not None:
        done = original.refunded_amount + case.amount == original.amount
        change = TransactionChange(
            original.id, "refunded" if done else "partially_refunded", refunded_amount=case.amount
        )
        if original.usage_day is not None:
            usage = UsageChange(payee.id, original.card_serial, -case.amount, 0, original.usage_day)
    held = case.total_debit if review else 0
    return Decision(
        outcome=build_outcome(answer, replayed=False),
        transaction=_build_transaction(case, answer, held=held, counted_on=counted_on),
        postings=() if review else _build_postings(case, payer, payee, earned),
        # Platform accounts are never locked and cannot run short, so they need no hold.
        hold=Hold(payer.id, held) if review and payer.is_locked else None,
        usage=usage,
        pin_updates=tuple(case.pin_updates),
        change=change,
        matches=_assign_matches(case, transaction_id),
        earned_commission=earned,
    )


def _earn_commission(case: CommandContext, payer: Account, payee: Account) -> EarnedCommission:
    now = case.state.now
    since = commission.get_window_start(now, now)
    return commission.earn_commission(
        case.state, case.command.type, payer, payee, case.amount, since
    )


def _build_result(
    case: CommandContext,
    payer: Account,
    payee: Account,
    transaction_id: int,
    earned: EarnedCommission | None,
    *,
    review: bool,
) -> TransactionResult:
    spent = case.total_debit - case.refunded_fee
    refundable = None
    if case.original is not None:
        refundable = case.original.amount - case.original.refunded_amount - case.amount
    payee_available = None
    if payee.is_locked:
        payee_available = payee.available + (0 if review else case.credited_amount)
    return TransactionResult(
        transaction_id=transaction_id,
        status="under_review" if review else "completed",
        amount=case.amount,
        fee=case.fee,
        payer_available=payer.available - spent if payer.is_locked else None,
        payee_available=payee_available,
        commission=earned.amount if earned is not None else 0,
        refundable_amount=refundable,
        payee_name=payee.public_name,
        original_id=case.command.original_id,
    )


def _build_postings(
    case: CommandContext, payer: Account, payee: Account, earned: EarnedCommission | None
) -> tuple[Posting, ...]:
    own = case.state.rules.platform_accounts
    postings = [Posting(payer.id, payee.id, case.amount)]
    if case.fee:
        side = payer if case.fee_payer == "sender" else payee
        postings.append(Posting(side.id, own[chart.FEES], case.fee))
    if earned is not None and earned.amount:
        postings.append(commission.build_posting(case.state, earned))
    if case.refunded_fee:
        # First, so that the processor can refund the full amount out of what it received.
        postings.insert(0, Posting(own[chart.FEES], payer.id, case.refunded_fee))
    return tuple(postings)


def _build_transaction(
    case: CommandContext, answer: TransactionResult, *, held: int, counted_on: date | None
) -> NewTransaction:
    command, payer, payee = case.command, case.payer, case.payee
    return NewTransaction(
        id=answer.transaction_id,
        type=command.type,
        status=answer.status,
        channel=command.channel,
        amount=case.amount,
        fee_amount=answer.fee,
        from_account=payer.id if payer is not None else None,
        to_account=payee.id if payee is not None else None,
        held=held,
        card_serial=case.payer_card.serial if case.payer_card is not None else None,
        to_card_serial=case.payee_card.serial if case.payee_card is not None else None,
        original_id=command.original_id,
        usage_day=counted_on,
        idempotency_key=command.idempotency_key,
        reference=command.reference,
        failure_code=answer.code,
        context=command.context,
        result=answer,
    )


def _assign_matches(case: CommandContext, transaction_id: int) -> tuple[RuleMatch, ...]:
    if not case.matches:
        return ()
    return tuple(match._replace(transaction_id=transaction_id) for match in case.matches)
