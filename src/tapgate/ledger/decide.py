"""What happens to a command: the whole business decision, without any I/O.

`decide` takes what was loaded and one command and returns data; the first check that objects ends
the matter.
"""

from collections.abc import Callable
from datetime import date

from tapgate.errors import Code
from tapgate.ledger import chart, commission
from tapgate.ledger.case import Case, No, open_case
from tapgate.ledger.checks import CHECKS
from tapgate.ledger.commands import Answer, Command, Outcome, RequestKey, outcome_of
from tapgate.ledger.pin_tries import PinCheck
from tapgate.ledger.screening import wrong_pin_matches
from tapgate.ledger.state import (
    Account,
    Change,
    Decision,
    Earned,
    Hold,
    Match,
    NewTransaction,
    Posting,
    State,
    Usage,
)


def decide(
    state: State, command: Command, is_right_pin: PinCheck, new_id: Callable[[], int]
) -> Decision:
    case = open_case(state, command, is_right_pin)
    earlier = _earlier_outcome(case)
    if earlier is not None:
        return Decision(outcome=earlier)
    for check in CHECKS:
        objection = check(case)
        if objection is None:
            continue
        if objection.recorded and case.amount:
            return _decline(case, objection, new_id())
        return _refuse(case, objection)
    return _accept(case, new_id())


def _earlier_outcome(case: Case) -> Outcome | None:
    """Return the original outcome of a replay; a key reused for another request is a conflict."""
    command = case.command
    if command.request is not None:
        outcome = _earlier_request(case.state, command.request)
        if outcome is not None:
            return outcome
    if command.reference is not None:
        reference = command.reference
        earlier = case.state.references.get((reference.partner_id, reference.reference))
        if earlier is not None:
            same = case.payee is not None and earlier.to_account == case.payee.id
            if not same or earlier.amount != case.amount:
                return Outcome(None, Code.DUPLICATE_REFERENCE)
            return outcome_of(earlier.answer, replayed=True)
    return None


def _earlier_request(state: State, request: RequestKey) -> Outcome | None:
    """Several requests are found where keys of one owner used one id before the owner was the
    scope: the request that is repeated is replayed, and any other is a conflict."""
    scopes = request.lookup_scopes or (request.scope,)
    found = [state.requests.get((scope, request.request_id)) for scope in scopes]
    for earlier in found:
        if earlier is not None and earlier.fingerprint == request.fingerprint:
            return outcome_of(earlier.answer, replayed=True)
    return Outcome(None, Code.DUPLICATE_REQUEST) if any(found) else None


def _refuse(case: Case, objection: No) -> Decision:
    outcome = Outcome(None, objection.code, objection.details)
    wallet = case.wrong_pin_of
    if wallet is None or wallet.owner_id is None:
        return Decision(outcome=outcome, pins=tuple(case.pins))
    watches = case.state.rules.pin_watches
    wrong_pins = {
        (rule.id, wallet.id): case.state.wrong_pins.get((rule.id, wallet.id), 0) + 1
        for rule in watches
    }
    return Decision(
        outcome=outcome,
        pins=tuple(case.pins),
        wrong_pin_of=wallet.id,
        matches=tuple(wrong_pin_matches(watches, wrong_pins, wallet.id, wallet.owner_id)),
    )


def _decline(case: Case, objection: No, transaction_id: int) -> Decision:
    answer = Answer(
        transaction_id=transaction_id,
        status="failed",
        amount=case.amount,
        fee=0,
        code=str(objection.code),
        details=objection.details,
        original_id=case.command.original_id,
    )
    # What was declined for another reason matched no rule: it does not count.
    if objection.code == Code.COMPLIANCE_REJECTED:
        case.matches = [match for match in case.matches if match.rule.action == "block"]
    else:
        case.matches = []
    return Decision(
        outcome=outcome_of(answer, replayed=False),
        transaction=_transaction(case, answer, held=0, counted_on=None),
        pins=tuple(case.pins),
        matches=_named(case, transaction_id),
    )


def _accept(case: Case, transaction_id: int) -> Decision:
    payer, payee = case.payer, case.payee
    assert payer is not None
    assert payee is not None
    review = bool(case.matches) and any(match.review for match in case.matches)
    earned = None
    if not review and case.command.type in chart.CASH_TYPES:
        earned = _earn(case, payer, payee)
    answer = _answer(case, payer, payee, transaction_id, earned, review=review)
    usage, counted_on = None, None
    if case.counts:
        unpinned = case.amount if case.command.payer_pin is None else 0
        serial = case.payer_card.serial if case.payer_card is not None else None
        counted_on = max(case.state.today, payer.usage_day or case.state.today)
        usage = Usage(payer.id, serial, case.amount, unpinned, counted_on)
    change = None
    original = case.original
    if original is not None:
        done = original.refunded_amount + case.amount == original.amount
        change = Change(
            original.id, "refunded" if done else "partially_refunded", refunded=case.amount
        )
        if original.usage_day is not None:
            usage = Usage(payee.id, original.card_serial, -case.amount, 0, original.usage_day)
    held = case.total if review else 0
    return Decision(
        outcome=outcome_of(answer, replayed=False),
        transaction=_transaction(case, answer, held=held, counted_on=counted_on),
        postings=() if review else _postings(case, payer, payee, earned),
        # The platform's own accounts are never locked and cannot run short: they hold nothing.
        hold=Hold(payer.id, held) if review and payer.locked else None,
        usage=usage,
        pins=tuple(case.pins),
        change=change,
        matches=_named(case, transaction_id),
        earned=earned,
    )


def _earn(case: Case, payer: Account, payee: Account) -> Earned:
    now = case.state.now
    since = commission.window_start(now, now)
    return commission.earn(case.state, case.command.type, payer, payee, case.amount, since)


def _answer(
    case: Case,
    payer: Account,
    payee: Account,
    transaction_id: int,
    earned: Earned | None,
    *,
    review: bool,
) -> Answer:
    spent = case.total - case.returned_fee
    refundable = None
    if case.original is not None:
        refundable = case.original.amount - case.original.refunded_amount - case.amount
    payee_available = None
    if payee.locked:
        payee_available = payee.available + (0 if review else case.credited)
    return Answer(
        transaction_id=transaction_id,
        status="under_review" if review else "completed",
        amount=case.amount,
        fee=case.fee,
        payer_available=payer.available - spent if payer.locked else None,
        payee_available=payee_available,
        commission=earned.commission if earned is not None else 0,
        refundable=refundable,
        payee_name=payee.public_name,
        original_id=case.command.original_id,
    )


def _postings(
    case: Case, payer: Account, payee: Account, earned: Earned | None
) -> tuple[Posting, ...]:
    own = case.state.rules.platform_accounts
    postings = [Posting(payer.id, payee.id, case.amount)]
    if case.fee:
        side = payer if case.fee_payer == "sender" else payee
        postings.append(Posting(side.id, own[chart.FEES], case.fee))
    if earned is not None and earned.commission:
        postings.append(commission.posting(case.state, earned))
    if case.returned_fee:
        # First, so that the processor can pay the whole amount back out of what it received.
        postings.insert(0, Posting(own[chart.FEES], payer.id, case.returned_fee))
    return tuple(postings)


def _transaction(
    case: Case, answer: Answer, *, held: int, counted_on: date | None
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
        request=command.request,
        reference=command.reference,
        failure_code=answer.code,
        context=command.context,
        answer=answer,
    )


def _named(case: Case, transaction_id: int) -> tuple[Match, ...]:
    if not case.matches:
        return ()
    return tuple(match._replace(transaction_id=transaction_id) for match in case.matches)
