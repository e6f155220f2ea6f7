"""The checks that every command passes, in the order in which a client is told about them."""

from collections.abc import Callable

from tapgate import money
from tapgate.errors import Code
from tapgate.ledger import chart, screening
from tapgate.ledger.case import Case, No
from tapgate.ledger.pin_tries import try_pin
from tapgate.ledger.state import Account, Card, State

NO_PIN_PAYMENTS_PER_DAY = 5  # times the no-PIN limit, on one card


def _known(case: Case) -> No | None:
    command = case.command
    if command.type == chart.REFUND:
        return _known_to_the_processor(case)
    for party, account, card in (
        (command.payer, case.payer, case.payer_card),
        (command.payee, case.payee, case.payee_card),
    ):
        if party.by == "card" and card is None:
            return No(Code.CARD_NOT_FOUND)
        if account is None and party.by == "owner":
            return No(chart.HOLDER_CODES[party.kind].not_found)
        if account is None and party.by == "account":
            return No(Code.ACCOUNT_NOT_FOUND)
    return None


def _known_to_the_processor(case: Case) -> No | None:
    original, payer = case.original, case.payer
    if original is None or payer is None:
        return No(Code.TRANSACTION_NOT_FOUND)
    if payer.id == original.from_account:
        return No(Code.NOT_REFUNDABLE)  # the processor itself sent it: a refund, for one
    return None if payer.id == original.to_account else No(Code.TRANSACTION_NOT_FOUND)


def _callers_objection(case: Case) -> No | None:
    objection = case.command.objection
    return No(objection) if objection is not None else None


def _between_others(case: Case) -> No | None:
    payer, payee = case.payer, case.payee
    if payer is not None and payer is payee:
        return No(Code.SELF_TRANSFER)
    if case.command.wallets_only and not _between_wallets(payer, payee):
        return No(Code.FORBIDDEN, {"required": ["subscribers' accounts"]})
    if case.command.type == chart.AGENT_TRANSFER and payer is not None and payee is not None:
        receiver = case.state.agents.get(payee.owner_id or 0)
        if receiver is None or receiver.parent_agent_id != payer.owner_id:
            return No(Code.FORBIDDEN, {"required": ["one's own sub-agent"]})
    return None


def _between_wallets(*parties: Account | None) -> bool:
    return all(party is None or party.kind == chart.WALLET for party in parties)


def _payer_pin(case: Case) -> No | None:
    command = case.command
    if command.payer_pin is not None:
        return _judge_pin(case, case.payer, case.payer_card, command.payer_pin)
    if command.pin_policy == "required":
        return No(Code.PIN_REQUIRED)
    if command.pin_policy == "above_no_pin_limit":
        return _within_no_pin_limit(case)
    return None


def _within_no_pin_limit(case: Case) -> No | None:
    limits, card = case.limits, case.payer_card
    if limits is None or card is None:
        return None
    _, unpinned = card.used(case.state.today)
    over_one = case.amount > limits.no_pin_limit
    over_day = unpinned + case.amount > NO_PIN_PAYMENTS_PER_DAY * limits.no_pin_limit
    return No(Code.PIN_REQUIRED) if over_one or over_day else None


def _payee_pin(case: Case) -> No | None:
    if case.command.payee_pin is None:
        return None
    objection = _judge_pin(case, case.payee, case.payee_card, case.command.payee_pin)
    if objection is None or objection.details is None:
        return objection
    # Two PINs were given: say that it is not the payer's.
    return objection._replace(details=objection.details | {"party": "receiver"})


def _judge_pin(case: Case, account: Account | None, card: Card | None, pin: str) -> No | None:
    if card is not None:
        holder = card.pin_holder_id
    else:
        holder = account.owner_id if account is not None else None
    if holder is None:
        return None  # an unlinked card has no PIN; its state is looked at next
    stored = case.state.pins.get(holder)
    if stored is None:
        return No(Code.INVALID_PIN, {"attempts_remaining": 0})
    verdict = try_pin(stored, pin, case.is_right_pin, case.state.now)
    if verdict.state != stored:
        case.pins.append(verdict.state)
    if verdict.code == Code.INVALID_PIN and account is not None and account.kind == chart.WALLET:
        case.wrong_pin_of = account
    return No(verdict.code, verdict.details) if verdict.code is not None else None


def _sender_state(case: Case) -> No | None:
    objection = not_active(case.state, case.payer, case.payer_card, "sender")
    if objection is None and case.command.payee_pin is not None:
        # An agent who hands out cash acts, even though the money comes to them.
        objection = not_active(case.state, case.payee, case.payee_card, "receiver")
    return objection


def not_active(state: State, account: Account | None, card: Card | None, party: str) -> No | None:
    if card is not None:
        expired = card.expires_at is not None and card.expires_at <= state.now
        if card.status != "ACTIVE" or expired:
            return No(Code.CARD_NOT_ACTIVE, {"party": party}, recorded=True)
    if account is None or account.status == "active":
        return None
    return No(chart.HOLDER_CODES[account.kind].not_active, {"party": party}, recorded=True)


def _refundable(case: Case) -> No | None:
    original = case.original
    if original is None:
        return None
    if original.status == "refunded":
        return No(Code.ALREADY_REFUNDED)
    closed = case.payee is None or case.payee.status == "closed"
    paid = original.status in ("completed", "partially_refunded")
    if original.type not in chart.PAYMENT_TYPES or not paid or closed:
        return No(Code.NOT_REFUNDABLE)
    remaining = original.amount - original.refunded_amount
    if case.amount > remaining:
        return No(
            Code.REFUND_EXCEEDS_REMAINING,
            {"refundable_amount": money.plain(remaining, case.state.rules.currency)},
        )
    return None


def _transaction_limit(case: Case) -> No | None:
    limits = case.limits if case.counts else None
    if limits is None or case.amount <= limits.max_transaction:
        return None
    return case.over(Code.TRANSACTION_LIMIT_EXCEEDED, limit=limits.max_transaction, used=0)


def _card_limit(case: Case) -> No | None:
    card = case.payer_card
    if card is None or card.daily_limit is None or not case.counts:
        return None
    spent, _ = card.used(case.state.today)
    if spent + case.amount <= card.daily_limit:
        return None
    return case.over(Code.CARD_LIMIT_EXCEEDED, limit=card.daily_limit, used=spent)


def _daily_limit(case: Case) -> No | None:
    limits = case.limits if case.counts else None
    if limits is None or case.payer is None:
        return None
    used, _ = case.payer.used(case.state.today)
    if used + case.amount <= limits.daily_limit:
        return None
    return case.over(Code.DAILY_LIMIT_EXCEEDED, limit=limits.daily_limit, used=used)


def _monthly_limit(case: Case) -> No | None:
    limits = case.limits if case.counts else None
    if limits is None or case.payer is None:
        return None
    _, used = case.payer.used(case.state.today)
    if used + case.amount <= limits.monthly_limit:
        return None
    return case.over(Code.MONTHLY_LIMIT_EXCEEDED, limit=limits.monthly_limit, used=used)


def _compliance(case: Case) -> No | None:
    case.matches = screening.matches(
        case.state, case.payer, case.payee, case.command.type, case.amount
    )
    if case.matches and any(match.rule.action == "block" for match in case.matches):
        return No(Code.COMPLIANCE_REJECTED, recorded=True)
    return None


def funds(case: Case) -> No | None:
    payer = case.payer
    if payer is None or not payer.locked:
        return None
    if case.amount == 0:
        return _insufficient(case, payer, 0)
    required = case.total - case.returned_fee
    if payer.available + payer.overdraft >= required:
        return None
    return _insufficient(case, payer, required)


def _insufficient(case: Case, payer: Account, required: int) -> No:
    show = case.state.rules.currency
    code = Code.INSUFFICIENT_FLOAT if payer.kind == chart.FLOAT else Code.INSUFFICIENT_FUNDS
    available = payer.available + payer.overdraft
    return No(
        code,
        {"available": money.number(available, show), "required": money.number(required, show)},
        recorded=True,
    )


def _receiver_state(case: Case) -> No | None:
    if case.command.type == chart.REFUND:
        return None
    return not_active(case.state, case.payee, case.payee_card, "receiver")


def _max_balance(case: Case) -> No | None:
    if case.command.type == chart.REFUND or case.payee is None:
        return None
    return over_max_balance(case.state, case.payee, case.credited)


def over_max_balance(state: State, payee: Account, credited: int) -> No | None:
    if payee.kyc_level is None:
        return None
    limit = state.rules.limits[payee.kyc_level].max_balance
    if payee.balance + credited <= limit:
        return None
    show = state.rules.currency
    return No(
        Code.MAX_BALANCE_EXCEEDED,
        {
            "limit": money.plain(limit, show),
            "used": money.plain(payee.balance, show),
            "attempted": money.plain(credited, show),
            "party": "receiver",
        },
        recorded=True,
    )


CHECKS: tuple[Callable[[Case], No | None], ...] = (
    _known,
    _callers_objection,
    _between_others,
    _payer_pin,
    _payee_pin,
    _sender_state,
    _refundable,
    _transaction_limit,
    _card_limit,
    _daily_limit,
    _monthly_limit,
    _compliance,
    funds,
    _receiver_state,
    _max_balance,
)

#: What can be said of one side while the other is not known.
OF_THE_SENDER: tuple[Callable[[Case], No | None], ...] = (
    _sender_state,
    _transaction_limit,
    _card_limit,
    _daily_limit,
    _monthly_limit,
    _compliance,
)
OF_THE_RECEIVER: tuple[Callable[[Case], No | None], ...] = (
    _compliance,
    _receiver_state,
    _max_balance,
)
