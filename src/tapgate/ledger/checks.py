"""Checks that every command must pass, in order of precedence of their error codes."""

from collections.abc import Callable

from tapgate import money
from tapgate.errors import Code
from tapgate.ledger import chart, screening
from tapgate.ledger.context import CommandContext, Rejection
from tapgate.ledger.pin_attempts import evaluate_pin
from tapgate.ledger.state import Account, Card, State

#: Multiple of the no-PIN limit that one card may spend per day without a PIN.
NO_PIN_DAILY_LIMIT_FACTOR = 5


def _check_parties_exist(case: CommandContext) -> Rejection | None:
    command = case.command
    if command.type == chart.REFUND:
        return _check_refund_original(case)
    for party, account, card in (
        (command.payer, case.payer, case.payer_card),
        (command.payee, case.payee, case.payee_card),
    ):
        if party.by == "card" and card is None:
            return Rejection(Code.CARD_NOT_FOUND)
        if account is None and party.by == "owner":
            return Rejection(chart.HOLDER_ERROR_CODES[party.kind].not_found)
        if account is None and party.by == "account":
            return Rejection(Code.ACCOUNT_NOT_FOUND)
    return None


def _check_refund_original(case: CommandContext) -> Rejection | None:
    original, payer = case.original, case.payer
    if original is None or payer is None:
        return Rejection(Code.TRANSACTION_NOT_FOUND)
    if payer.id == original.from_account:
        return Rejection(Code.NOT_REFUNDABLE)  # sent by the processor, such as a refund
    return None if payer.id == original.to_account else Rejection(Code.TRANSACTION_NOT_FOUND)


def _check_caller_error(case: CommandContext) -> Rejection | None:
    objection = case.command.caller_error
    return Rejection(objection) if objection is not None else None


def _check_parties_allowed(case: CommandContext) -> Rejection | None:
    payer, payee = case.payer, case.payee
    if payer is not None and payer is payee:
        return Rejection(Code.SELF_TRANSFER)
    if case.command.wallets_only and not _are_wallets(payer, payee):
        return Rejection(Code.FORBIDDEN, {"required": ["subscribers' accounts"]})
    if case.command.type == chart.AGENT_TRANSFER and payer is not None and payee is not None:
        receiver = case.state.agents.get(payee.owner_id or 0)
        if receiver is None or receiver.parent_agent_id != payer.owner_id:
            return Rejection(Code.FORBIDDEN, {"required": ["a sub-agent of the sender"]})
    return None


def _are_wallets(*parties: Account | None) -> bool:
    return all(party is None or party.kind == chart.WALLET for party in parties)


def _check_payer_pin(case: CommandContext) -> Rejection | None:
    command = case.command
    if command.payer_pin is not None:
        return _verify_pin(case, case.payer, case.payer_card, command.payer_pin)
    if command.pin_policy == "required":
        return Rejection(Code.PIN_REQUIRED)
    if command.pin_policy == "above_no_pin_limit":
        return _check_no_pin_limit(case)
    return None


def _check_no_pin_limit(case: CommandContext) -> Rejection | None:
    limits, card = case.limits, case.payer_card
    if limits is None or card is None:
        return None
    _, unpinned = card.get_usage(case.state.today)
    over_one = case.amount > limits.no_pin_limit
    over_day = unpinned + case.amount > NO_PIN_DAILY_LIMIT_FACTOR * limits.no_pin_limit
    return Rejection(Code.PIN_REQUIRED) if over_one or over_day else None


def _check_payee_pin(case: CommandContext) -> Rejection | None:
    if case.command.payee_pin is None:
        return None
    objection = _verify_pin(case, case.payee, case.payee_card, case.command.payee_pin)
    if objection is None or objection.details is None:
        return objection
    # The request has two PINs: report that the payee's failed, not the payer's.
    return objection._replace(details=objection.details | {"party": "receiver"})


def _verify_pin(
    case: CommandContext, account: Account | None, card: Card | None, pin: str
) -> Rejection | None:
    if card is not None:
        holder = card.pin_holder_id
    else:
        holder = account.owner_id if account is not None else None
    if holder is None:
        return None  # an unlinked card has no PIN; a later check rejects it by status
    stored = case.state.pins.get(holder)
    if stored is None:
        return Rejection(Code.INVALID_PIN, {"attempts_remaining": 0})
    verdict = evaluate_pin(stored, pin, case.is_correct_pin, case.state.now)
    if verdict.state != stored:
        case.pin_updates.append(verdict.state)
    if verdict.code == Code.INVALID_PIN and account is not None and account.kind == chart.WALLET:
        case.wrong_pin_account = account
    return Rejection(verdict.code, verdict.details) if verdict.code is not None else None


def _check_sender_active(case: CommandContext) -> Rejection | None:
    objection = check_active(case.state, case.payer, case.payer_card, "sender")
    if objection is None and case.command.payee_pin is not None:
        # An agent who hands out cash is an acting party, although the agent receives the money.
        objection = check_active(case.state, case.payee, case.payee_card, "receiver")
    return objection


def check_active(
    state: State, account: Account | None, card: Card | None, party: str
) -> Rejection | None:
    if card is not None:
        expired = card.expires_at is not None and card.expires_at <= state.now
        if card.status != "ACTIVE" or expired:
            return Rejection(Code.CARD_NOT_ACTIVE, {"party": party}, is_decline=True)
    if account is None or account.status == "active":
        return None
    return Rejection(
        chart.HOLDER_ERROR_CODES[account.kind].not_active, {"party": party}, is_decline=True
    )


def _check_refundable(case: CommandContext) -> Rejection | None:
    original = case.original
    if original is None:
        return None
    if original.status == "refunded":
        return Rejection(Code.ALREADY_REFUNDED)
    closed = case.payee is None or case.payee.status == "closed"
    paid = original.status in ("completed", "partially_refunded")
    if original.type not in chart.PAYMENT_TYPES or not paid or closed:
        return Rejection(Code.NOT_REFUNDABLE)
    remaining = original.amount - original.refunded_amount
    if case.amount > remaining:
        return Rejection(
            Code.REFUND_EXCEEDS_REMAINING,
            {"refundable_amount": money.format_decimal(remaining, case.state.rules.currency)},
        )
    return None


def _check_transaction_limit(case: CommandContext) -> Rejection | None:
    limits = case.limits if case.counts_toward_limits else None
    if limits is None or case.amount <= limits.max_transaction:
        return None
    return case.build_limit_decline(
        Code.TRANSACTION_LIMIT_EXCEEDED, limit=limits.max_transaction, used=0
    )


def _check_card_limit(case: CommandContext) -> Rejection | None:
    card = case.payer_card
    if card is None or card.daily_limit is None or not case.counts_toward_limits:
        return None
    spent, _ = card.get_usage(case.state.today)
    if spent + case.amount <= card.daily_limit:
        return None
    return case.build_limit_decline(Code.CARD_LIMIT_EXCEEDED, limit=card.daily_limit, used=spent)


def _check_daily_limit(case: CommandContext) -> Rejection | None:
    limits = case.limits if case.counts_toward_limits else None
    if limits is None or case.payer is None:
        return None
    used, _ = case.payer.get_usage(case.state.today)
    if used + case.amount <= limits.daily_limit:
        return None
    return case.build_limit_decline(Code.DAILY_LIMIT_EXCEEDED, limit=limits.daily_limit, used=used)


def _check_monthly_limit(case: CommandContext) -> Rejection | None:
    limits = case.limits if case.counts_toward_limits else None
    if limits is None or case.payer is None:
        return None
    _, used = case.payer.get_usage(case.state.today)
    if used + case.amount <= limits.monthly_limit:
        return None
    return case.build_limit_decline(
        Code.MONTHLY_LIMIT_EXCEEDED, limit=limits.monthly_limit, used=used
    )


def _check_compliance(case: CommandContext) -> Rejection | None:
    case.matches = screening.find_matches(
        case.state, case.payer, case.payee, case.command.type, case.amount
    )
    if case.matches and any(match.rule.action == "block" for match in case.matches):
        return Rejection(Code.COMPLIANCE_REJECTED, is_decline=True)
    return None


def check_funds(case: CommandContext) -> Rejection | None:
    payer = case.payer
    if payer is None or not payer.is_locked:
        return None
    if case.amount == 0:
        return _build_insufficient_funds(case, payer, 0)
    required = case.total_debit - case.refunded_fee
    if payer.available + payer.overdraft >= required:
        return None
    return _build_insufficient_funds(case, payer, required)


def _build_insufficient_funds(case: CommandContext, payer: Account, required: int) -> Rejection:
    show = case.state.rules.currency
    code = Code.INSUFFICIENT_FLOAT if payer.kind == chart.FLOAT else Code.INSUFFICIENT_FUNDS
    available = payer.available + payer.overdraft
    return Rejection(
        code,
        {"available": money.to_float(available, show), "required": money.to_float(required, show)},
        is_decline=True,
    )


def _check_receiver_active(case: CommandContext) -> Rejection | None:
    if case.command.type == chart.REFUND:
        return None
    return check_active(case.state, case.payee, case.payee_card, "receiver")


def _check_receiver_max_balance(case: CommandContext) -> Rejection | None:
    if case.command.type == chart.REFUND or case.payee is None:
        return None
    return check_max_balance(case.state, case.payee, case.credited_amount)


def check_max_balance(state: State, payee: Account, credited: int) -> Rejection | None:
    if payee.kyc_level is None:
        return None
    limit = state.rules.limits[payee.kyc_level].max_balance
    if payee.balance + credited <= limit:
        return None
    show = state.rules.currency
    return Rejection(
        Code.MAX_BALANCE_EXCEEDED,
        {
            "limit": money.format_decimal(limit, show),
            "used": money.format_decimal(payee.balance, show),
            "attempted": money.format_decimal(credited, show),
            "party": "receiver",
        },
        is_decline=True,
    )


CHECKS: tuple[Callable[[CommandContext], Rejection | None], ...] = (
    _check_parties_exist,
    _check_caller_error,
    _check_parties_allowed,
    _check_payer_pin,
    _check_payee_pin,
    _check_sender_active,
    _check_refundable,
    _check_transaction_limit,
    _check_card_limit,
    _check_daily_limit,
    _check_monthly_limit,
    _check_compliance,
    check_funds,
    _check_receiver_active,
    _check_receiver_max_balance,
)

#: Checks that need only one side, for use while the counterparty is not known.
SENDER_CHECKS: tuple[Callable[[CommandContext], Rejection | None], ...] = (
    _check_sender_active,
    _check_transaction_limit,
    _check_card_limit,
    _check_daily_limit,
    _check_monthly_limit,
    _check_compliance,
)
RECEIVER_CHECKS: tuple[Callable[[CommandContext], Rejection | None], ...] = (
    _check_compliance,
    _check_receiver_active,
    _check_receiver_max_balance,
)
