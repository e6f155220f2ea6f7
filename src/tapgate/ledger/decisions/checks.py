"""Checks that every command must pass, in order of precedence of their error codes."""

from collections.abc import Callable
from typing import Final

from tapgate.ledger import chart
from tapgate.ledger.archive.archived import ARCHIVED
from tapgate.ledger.card_proofs.proof_verifier import (
    NOT_CONFIRMED_DETAILS,
    OTHER_CARD_MESSAGE,
    find_proof_error,
    is_not_confirmed,
)
from tapgate.ledger.decisions.context import CommandContext, Rejection
from tapgate.ledger.decisions.state import Account, Card, State
from tapgate.ledger.pins.pin_lockout import evaluate_pin
from tapgate.ledger.pins.wrong_pins import WrongPin, get_phone_owner
from tapgate.ledger.rules.compliance import find_matches
from tapgate_client import money
from tapgate_client.errors import Code
from tapgate_client.schemas.cards import CardStatus
from tapgate_client.schemas.compliance import RuleAction

#: A plain string, because every payment compares it and enum members are slow.
_CARD_ACTIVE: Final = CardStatus.ACTIVE.value
_OTHER_CARD: Final = Rejection(
    Code.VALIDATION_FAILED, {"fields": {"card_proof": OTHER_CARD_MESSAGE}}
)


def _check_parties_exist(context: CommandContext) -> Rejection | None:
    command = context.command
    if command.type == chart.REFUND:
        return _check_refund_original(context)
    for party, account, card in (
        (command.payer, context.payer, context.payer_card),
        (command.payee, context.payee, context.payee_card),
    ):
        if party.by == "card" and card is None:
            proof = command.card_proof if party is command.payer else None
            if proof is None:
                return Rejection(Code.CARD_NOT_FOUND)
            # The proof error does not reveal whether a card has this serial.
            return _OTHER_CARD if proof.is_signed else Rejection(Code.CARD_NOT_GENUINE)
        if account is None and party.by == "owner":
            return Rejection(chart.HOLDER_ERROR_CODES[party.kind].not_found)
        if account is None and party.by == "account":
            return Rejection(Code.ACCOUNT_NOT_FOUND)
    return None


def _check_payout_exists(context: CommandContext) -> Rejection | None:
    is_missing = context.command.payout_change is not None and context.payout is None
    return Rejection(Code.PAYOUT_NOT_FOUND) if is_missing else None


def _check_batch_line(context: CommandContext) -> Rejection | None:
    line = context.command.batch_line
    is_payable = line is None or line in context.state.payable_lines
    return None if is_payable else Rejection(Code.BATCH_NOT_READY)


def _check_refund_original(context: CommandContext) -> Rejection | None:
    original, payer = context.original, context.payer
    if original is None and (context.command.original_id or 0) < context.state.archive_end:
        return Rejection(Code.NOT_REFUNDABLE, dict(ARCHIVED))
    if original is None or payer is None:
        return Rejection(Code.TRANSACTION_NOT_FOUND)
    if payer.id == original.from_account:
        return Rejection(Code.NOT_REFUNDABLE)  # the processor was the payer, as in a refund
    return None if payer.id == original.to_account else Rejection(Code.TRANSACTION_NOT_FOUND)


def _check_caller_error(context: CommandContext) -> Rejection | None:
    command = context.command
    if command.caller_error is None:
        return None
    return Rejection(
        command.caller_error, command.caller_error_details, command.declines_caller_error
    )


def _check_parties_allowed(context: CommandContext) -> Rejection | None:
    payer, payee = context.payer, context.payee
    if payer is not None and payer is payee:
        return Rejection(Code.SELF_TRANSFER)
    if context.command.type == chart.TRANSFER and _is_in_transit(payer, payee):
        return Rejection(Code.FORBIDDEN, {"required": ["an account of a holder, or cash"]})
    if context.command.wallets_only and not _are_wallets(payer, payee):
        return Rejection(Code.FORBIDDEN, {"required": ["subscribers' accounts"]})
    if context.command.type == chart.AGENT_TRANSFER and payer is not None and payee is not None:
        receiver = context.state.agents.get(payee.owner_id or 0)
        if receiver is None or receiver.parent_agent_id != payer.owner_id:
            return Rejection(Code.FORBIDDEN, {"required": ["a sub-agent of the sender"]})
    return None


def _are_wallets(*parties: Account | None) -> bool:
    return all(party is None or party.kind == chart.WALLET for party in parties)


def _is_in_transit(*parties: Account | None) -> bool:
    """Return whether only payouts may change a party's balance."""
    return any(party is not None and party.kind == chart.PAYOUTS_IN_TRANSIT for party in parties)


def _check_card_proof(context: CommandContext) -> Rejection | None:
    command, card, proof = context.command, context.payer_card, context.command.card_proof
    if card is None or command.type not in chart.PAYMENT_TYPES:
        return None
    if proof is None:
        if card.keyset_id is not None:
            return Rejection(Code.CARD_PROOF_REQUIRED)
        return _check_proof_threshold(context)
    if proof.is_signed and proof.card_serial != card.serial:
        return _OTHER_CARD
    error_code = find_proof_error(proof, card)
    if error_code is None:
        return None
    return Rejection(error_code, NOT_CONFIRMED_DETAILS if is_not_confirmed(proof, card) else None)


def _check_proof_threshold(context: CommandContext) -> Rejection | None:
    """Reject an amount that requires a card proof if the card does not sign its taps."""
    limits, card = context.limits, context.payer_card
    if limits is None or not limits.requires_proof(context.amount):
        return None
    if card is None or card.keyset_id is not None:
        return None
    is_payment = context.command.type in chart.PAYMENT_TYPES
    return Rejection(Code.CARD_PROOF_REQUIRED) if is_payment else None


def _check_payer_pin(context: CommandContext) -> Rejection | None:
    command = context.command
    if command.payer_pin is not None:
        return _verify_pin(context, context.payer, context.payer_card, command.payer_pin)
    return Rejection(Code.PIN_REQUIRED) if is_pin_required(context) else None


def is_pin_required(context: CommandContext) -> bool:
    """Return whether the payer must enter a PIN. Without a card, its usage counts as zero."""
    policy = context.command.pin_policy
    if policy != "above_no_pin_limit":
        return policy == "required"
    limits, card = context.limits, context.payer_card
    if limits is None:
        return False
    unpinned = card.get_usage(context.state.today)[1] if card is not None else 0
    return limits.requires_pin(context.amount, unpinned)


def _check_payee_pin(context: CommandContext) -> Rejection | None:
    if context.command.payee_pin is None:
        return None
    rejection = _verify_pin(context, context.payee, context.payee_card, context.command.payee_pin)
    if rejection is None or rejection.details is None:
        return rejection
    # The request may contain two PINs: report that the payee's PIN failed, not the payer's.
    return rejection._replace(details=rejection.details | {"party": "receiver"})


def _verify_pin(
    context: CommandContext, account: Account | None, card: Card | None, pin: str
) -> Rejection | None:
    if card is not None:
        holder = card.pin_holder_id
    else:
        holder = account.owner_id if account is not None else None
    if holder is None:
        return None  # no PIN: a platform account, or an unlinked card, which a later check declines
    stored = context.state.pins.get(holder)
    if stored is None:
        return Rejection(Code.INVALID_PIN, {"attempts_remaining": 0})
    credential = context.command.pin_credential
    if credential is None:
        is_agent = account is not None and account.kind in (chart.FLOAT, chart.COMMISSION)
        owner_id = account.owner_id if account is not None else None
        credential = get_phone_owner(owner_id or holder, is_agent=is_agent)
    verdict = evaluate_pin(
        stored, pin, context.is_correct_pin, context.state.now, credential, context.wrong_pin_limit
    )
    if verdict.state != stored:
        context.pin_updates.append(verdict.state)
    if verdict.code == Code.INVALID_PIN:
        if verdict.counts:
            terminal_id = (context.command.context or {}).get("terminal_id")
            context.wrong_pin = WrongPin(credential, terminal_id)
        if account is not None and account.kind == chart.WALLET:
            context.wrong_pin_account = account
    return Rejection(verdict.code, verdict.details) if verdict.code is not None else None


def _check_sender_active(context: CommandContext) -> Rejection | None:
    rejection = check_active(context.state, context.payer, context.payer_card, "sender")
    if rejection is None and context.command.payee_pin is not None:
        # In a cash-out, the payee is an agent who enters a PIN, so the agent's status is checked
        # before the limits.
        rejection = check_active(context.state, context.payee, context.payee_card, "receiver")
    return rejection


def check_active(
    state: State, account: Account | None, card: Card | None, party: str
) -> Rejection | None:
    if card is not None:
        is_expired = card.expires_at is not None and card.expires_at <= state.now
        if card.status != _CARD_ACTIVE or is_expired:
            return Rejection(Code.CARD_NOT_ACTIVE, {"party": party}, is_decline=True)
    if account is None or account.status == chart.ACTIVE:
        return None
    return Rejection(
        chart.HOLDER_ERROR_CODES[account.kind].not_active, {"party": party}, is_decline=True
    )


def _check_refundable(context: CommandContext) -> Rejection | None:
    original = context.original
    if original is None:
        return None
    if original.status == chart.REFUNDED:
        return Rejection(Code.ALREADY_REFUNDED)
    is_payee_closed = context.payee is None or context.payee.status == chart.CLOSED
    is_paid = original.status in (chart.COMPLETED, chart.PARTIALLY_REFUNDED)
    if original.type not in chart.PAYMENT_TYPES or not is_paid or is_payee_closed:
        return Rejection(Code.NOT_REFUNDABLE)
    limit = context.command.refund_limit
    if limit is not None and original.refunded_amount + context.amount > limit:
        formatted = money.format_decimal(limit, context.state.rules.currency)
        return Rejection(Code.FORBIDDEN, {"required": ["merchant_manager"], "limit": formatted})
    remaining = original.amount - original.refunded_amount
    if context.amount > remaining:
        return Rejection(
            Code.REFUND_EXCEEDS_REMAINING,
            {"refundable_amount": money.format_decimal(remaining, context.state.rules.currency)},
        )
    return None


def _check_payout(context: CommandContext) -> Rejection | None:
    command, payout = context.command, context.payout
    if command.payout_change is not None and payout is not None:
        is_allowed = payout.status in command.payout_change.allowed
        return None if is_allowed else Rejection(Code.PAYOUT_NOT_PENDING, {"status": payout.status})
    if command.payout is not None and context.amount < command.payout.minimum:
        return Rejection(Code.INSUFFICIENT_FUNDS)
    return None


def _check_transaction_limit(context: CommandContext) -> Rejection | None:
    limits = context.limits if context.counts_toward_limits else None
    if limits is None or limits.allows_amount(context.amount):
        return None
    return context.build_limit_decline(
        Code.TRANSACTION_LIMIT_EXCEEDED, limit=limits.max_transaction, used=0
    )


def _check_card_limit(context: CommandContext) -> Rejection | None:
    card = context.payer_card
    if card is None or card.daily_limit is None or not context.counts_toward_limits:
        return None
    spent, _ = card.get_usage(context.state.today)
    if spent + context.amount <= card.daily_limit:
        return None
    return context.build_limit_decline(Code.CARD_LIMIT_EXCEEDED, limit=card.daily_limit, used=spent)


def _check_daily_limit(context: CommandContext) -> Rejection | None:
    limits = context.limits if context.counts_toward_limits else None
    if limits is None or context.payer is None:
        return None
    used, _ = context.payer.get_usage(context.state.today)
    if limits.allows_in_day(used, context.amount):
        return None
    return context.build_limit_decline(
        Code.DAILY_LIMIT_EXCEEDED, limit=limits.daily_limit, used=used
    )


def _check_monthly_limit(context: CommandContext) -> Rejection | None:
    limits = context.limits if context.counts_toward_limits else None
    if limits is None or context.payer is None:
        return None
    _, used = context.payer.get_usage(context.state.today)
    if limits.allows_in_month(used, context.amount):
        return None
    return context.build_limit_decline(
        Code.MONTHLY_LIMIT_EXCEEDED, limit=limits.monthly_limit, used=used
    )


def _check_compliance(context: CommandContext) -> Rejection | None:
    state = context.state
    context.matches = find_matches(
        state.rules.screening,
        state,
        context.payer,
        context.payee,
        context.command.type,
        context.amount,
        state.rules.currency,
    )
    if context.matches and any(match.rule.action == RuleAction.BLOCK for match in context.matches):
        return Rejection(Code.COMPLIANCE_REJECTED, is_decline=True)
    return None


def _check_funds(context: CommandContext) -> Rejection | None:
    payer = context.payer
    if payer is None or not payer.is_locked:
        return None
    if context.amount == 0:
        return _build_insufficient_funds(context, payer, 0)
    required = context.total_debit - context.refunded_fee
    overdraft = 0 if context.command.type == chart.PAYOUT else payer.overdraft
    if payer.available + overdraft >= required:
        return None
    return _build_insufficient_funds(context, payer, required)


def _build_insufficient_funds(context: CommandContext, payer: Account, required: int) -> Rejection:
    currency = context.state.rules.currency
    code = Code.INSUFFICIENT_FLOAT if payer.kind == chart.FLOAT else Code.INSUFFICIENT_FUNDS
    overdraft = 0 if context.command.type == chart.PAYOUT else payer.overdraft
    available = payer.available + overdraft
    return Rejection(
        code,
        {
            "available": money.to_float(available, currency),
            "required": money.to_float(required, currency),
        },
        is_decline=True,
    )


def _check_receiver_active(context: CommandContext) -> Rejection | None:
    if context.command.type in (chart.REFUND, chart.PAYOUT_RETURN):
        return None
    return check_active(context.state, context.payee, context.payee_card, "receiver")


def _check_receiver_max_balance(context: CommandContext) -> Rejection | None:
    if context.command.type == chart.REFUND or context.payee is None:
        return None
    return check_max_balance(context.state, context.payee, context.credited_amount)


def check_max_balance(state: State, payee: Account, credited: int) -> Rejection | None:
    if payee.kyc_level is None:
        return None
    limits = state.rules.limits[payee.kyc_level]
    if limits.allows_balance(payee.balance, credited):
        return None
    currency = state.rules.currency
    return Rejection(
        Code.MAX_BALANCE_EXCEEDED,
        {
            "limit": money.format_decimal(limits.max_balance, currency),
            "used": money.format_decimal(payee.balance, currency),
            "attempted": money.format_decimal(credited, currency),
            "party": "receiver",
        },
        is_decline=True,
    )


CHECKS: tuple[Callable[[CommandContext], Rejection | None], ...] = (
    _check_batch_line,
    _check_payout_exists,
    _check_parties_exist,
    _check_caller_error,
    _check_parties_allowed,
    _check_card_proof,
    _check_payer_pin,
    _check_payee_pin,
    _check_sender_active,
    _check_refundable,
    _check_payout,
    _check_transaction_limit,
    _check_card_limit,
    _check_daily_limit,
    _check_monthly_limit,
    _check_compliance,
    _check_funds,
    _check_receiver_active,
    _check_receiver_max_balance,
)

#: Checks for assessments, which have no PINs and no proofs. Each passes for an unknown party.
ASSESSED_CHECKS = (
    _check_parties_allowed,
    _check_proof_threshold,
    *CHECKS[CHECKS.index(_check_sender_active) :],
)
