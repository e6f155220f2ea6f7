"""Context in which one command is decided, and the reasons not to execute it."""

from typing import Any, NamedTuple

import msgspec

from tapgate.ledger import chart
from tapgate.ledger.commands import Command
from tapgate.ledger.decisions import payouts
from tapgate.ledger.decisions.state import Account, Card, State, StoredPayout, StoredTransaction
from tapgate.ledger.pins.pin_lockout import PinMatcher, PinState
from tapgate.ledger.pins.wrong_pin_limit import WrongPinLimit
from tapgate.ledger.pins.wrong_pins import WrongPin
from tapgate.ledger.rules.compliance import RuleMatch
from tapgate.ledger.rules.fees import SENDER
from tapgate.ledger.rules.kyc_limits import AccountRule
from tapgate_client import money
from tapgate_client.errors import Code


class Rejection(NamedTuple):
    """Reason why a command is not executed.

    A decline (`is_decline`) with an amount above zero is stored as a failed transaction and
    consumes the idempotency key. Otherwise, no transaction is stored.
    """

    code: Code
    details: dict[str, Any] | None = None
    is_decline: bool = False


class CommandContext(msgspec.Struct, kw_only=True, gc=False):
    """A command with the accounts, cards and amounts that its decision depends on."""

    state: State
    command: Command
    is_correct_pin: PinMatcher
    wrong_pin_limit: WrongPinLimit | None
    payer: Account | None
    payer_card: Card | None
    payee: Account | None
    payee_card: Card | None
    original: StoredTransaction | None
    payout: StoredPayout | None  # that the command changes
    amount: int
    fee: int
    fee_payer: str
    total_debit: int  # amount plus a fee that the sender pays; `refunded_fee` is not deducted
    credited_amount: int
    refunded_fee: int  # the payment's fee, returned to the processor by the last refund
    limits: AccountRule | None  # the payer's limits, if the payer has a KYC level
    counts_toward_limits: bool  # toward the payer's limits
    pin_updates: list[PinState] = []
    wrong_pin: WrongPin | None = None
    wrong_pin_account: Account | None = None  # always a wallet
    matches: list[RuleMatch] = []

    def build_limit_decline(self, code: Code, *, limit: int, used: int) -> Rejection:
        currency = self.state.rules.currency
        return Rejection(
            code,
            {
                "limit": money.format_decimal(limit, currency),
                "used": money.format_decimal(used, currency),
                "attempted": money.format_decimal(self.amount, currency),
            },
            is_decline=True,
        )


def build_context(
    state: State,
    command: Command,
    is_correct_pin: PinMatcher,
    wrong_pin_limit: WrongPinLimit | None = None,
) -> CommandContext:
    rules = state.rules
    payer, payer_card = state.find_party(command.payer)
    payee, payee_card = state.find_party(command.payee)
    payout = None
    if command.payout_change is not None:
        payout = state.payouts.get(command.payout_change.payout_id)
        payer, payee = payouts.get_parties(state, command.type, payout)
    original = None
    if command.type == chart.REFUND and command.original_id is not None:
        original = state.transactions.get(command.original_id)
        payee = state.accounts.get(original.from_account or 0) if original else None
    amount = command.amount
    if payout is not None:
        amount = payout.amount
    elif amount is None:
        if original is not None:
            amount = original.amount - original.refunded_amount
        elif command.payout is not None:
            amount = payouts.get_payable_amount(rules, command.payout, payer)
        else:
            amount = payer.available if payer is not None else 0
    fee, fee_payer = rules.calculate_fee(command.type, amount)
    is_sender_charged = fee_payer == SENDER
    is_charged = command.type == chart.PAYOUT
    if not is_charged and (_is_platform_account(payer) or _is_platform_account(payee)):
        fee = 0  # the platform does not charge itself
    if command.type == chart.TRANSFER_P2P and payer is not None and payer.kind == chart.CLEARING:
        fee = 0  # from another book, which has charged the fee
    level = payer.kyc_level if payer is not None else None
    return CommandContext(
        state=state,
        command=command,
        is_correct_pin=is_correct_pin,
        wrong_pin_limit=wrong_pin_limit,
        payer=payer,
        payer_card=payer_card,
        payee=payee,
        payee_card=payee_card,
        original=original,
        amount=amount,
        fee=fee,
        fee_payer=fee_payer,
        total_debit=amount + (fee if is_sender_charged else 0),
        credited_amount=amount - (0 if is_sender_charged else fee),
        payout=payout,
        refunded_fee=_calculate_refunded_fee(original, amount) if original is not None else 0,
        limits=rules.limits[level] if level is not None else None,
        counts_toward_limits=level is not None and command.type in chart.LIMITED_TYPES,
        pin_updates=[],
        matches=[],
    )


def _is_platform_account(account: Account | None) -> bool:
    return account is not None and account.owner_id is None


def _calculate_refunded_fee(original: StoredTransaction, amount: int) -> int:
    remaining = original.amount - original.refunded_amount
    return original.fee_amount if amount == remaining else 0
