"""Transaction dry run that reports every failed check.

PINs are not verified, and a party may be unknown. Nothing is moved, stored or counted. The result
may be out of date by the time the transaction is submitted.
"""

from typing import Final

import msgspec

from tapgate.ledger import chart
from tapgate.ledger.commands import Command, Party, PinPolicy, Reversal
from tapgate.ledger.decisions.allowance import build_allowance
from tapgate.ledger.decisions.checks import ASSESSED_CHECKS, is_pin_required
from tapgate.ledger.decisions.context import CommandContext, Rejection, build_context
from tapgate.ledger.decisions.reversals import decide_reversal
from tapgate.ledger.decisions.state import State
from tapgate.ledger.pins.pin_lockout import PinState
from tapgate.ledger.rules.compliance import RuleMatch
from tapgate_client.errors import Code
from tapgate_client.schemas.transactions import Channel

#: Placeholder for a party that an assessment does not include.
_UNKNOWN_PARTY: Final = Party("account", 0)


class RemainingLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a payer may still spend: in one transaction, today and this month.

    A card's own daily limit may reduce what is left for today.
    """

    transaction: int
    day: int
    month: int


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    """Dry run result. `rejections` are in the order in which the ledger checks."""

    fee: int
    fee_payer: str  # sender or receiver
    pin_required: bool | None = None  # None if it depends on an unknown payer's limits
    limits: RemainingLimits | None = None  # None if no limits apply to the payer
    rejections: tuple[Rejection, ...] = ()  # missing party, status, limits, compliance, funds
    matches: tuple[RuleMatch, ...] = ()  # all matching compliance rules, whatever their action


def build_command(
    transaction_type: str,
    amount: int,
    subscriber: Party | None,
    *,
    recipient: Party | None = None,
    pin_policy: PinPolicy = "if_given",
) -> Command:
    """Build a command with the subscriber as payer, or as payee for receive-only types.

    `recipient` is the payee if the subscriber pays.
    """
    is_payer = transaction_type not in chart.RECEIVE_ONLY_TYPES
    payer, payee = (subscriber, recipient) if is_payer else (None, subscriber)
    return Command(
        type=transaction_type,
        channel=Channel.API,
        payer=payer or _UNKNOWN_PARTY,
        payee=payee or _UNKNOWN_PARTY,
        amount=amount,
        # For a receive-only type, the payer is not the subscriber.
        pin_policy=pin_policy if is_payer else "if_given",
    )


def assess(state: State, command: Command) -> Assessment:
    context = build_context(state, command, _fail_on_pin)
    rejections = _find_missing_parties(context)
    if not rejections:
        failed = (check(context) for check in ASSESSED_CHECKS)
        rejections = [rejection for rejection in failed if rejection is not None]
    depends_on_limits = command.pin_policy == "above_no_pin_limit" and context.limits is None
    return Assessment(
        fee=context.fee,
        fee_payer=context.fee_payer,
        pin_required=None if depends_on_limits else is_pin_required(context),
        limits=_get_remaining_limits(context),
        rejections=tuple(rejections),
        matches=tuple(context.matches),
    )


class ReversalAssessment(msgspec.Struct, frozen=True, kw_only=True):
    """Effect of a reversal, or the reason why it would fail."""

    code: Code | None = None
    amount: int = 0
    remaining: int = 0  # after the reversal
    fee: int = 0
    commission: int = 0
    day_restored: int = 0  # allowance that the original payer gets back today
    month_restored: int = 0


def assess_reversal(state: State, reversal: Reversal) -> ReversalAssessment:
    decision = decide_reversal(state, reversal, lambda: 0)
    result, usage = decision.outcome.result, decision.usage
    if decision.outcome.code is not None or result is None:
        return ReversalAssessment(code=decision.outcome.code)
    day = month = 0
    if usage is not None:
        wallet = msgspec.structs.replace(state.accounts[usage.account_id])
        before = wallet.get_usage(state.today)
        wallet.add_usage(usage.amount, usage.counted_on, state.today)
        after = wallet.get_usage(state.today)
        day, month = before[0] - after[0], before[1] - after[1]
    return ReversalAssessment(
        amount=result.amount,
        remaining=result.refundable_amount or 0,
        fee=result.fee_refunded or 0,
        commission=result.commission,
        day_restored=day,
        month_restored=month,
    )


def _find_missing_parties(context: CommandContext) -> list[Rejection]:
    command = context.command
    codes = {"card": Code.CARD_NOT_FOUND, "owner": chart.HOLDER_ERROR_CODES[chart.WALLET].not_found}
    return [
        Rejection(codes[party.by])
        for party, holding in (
            (command.payer, context.payer or context.payer_card),
            (command.payee, context.payee or context.payee_card),
        )
        if party != _UNKNOWN_PARTY and holding is None
    ]


def _get_remaining_limits(context: CommandContext) -> RemainingLimits | None:
    state, payer, card = context.state, context.payer, context.payer_card
    if payer is None or not context.counts_toward_limits:
        return None
    allowance = build_allowance(payer, state.rules, state.today)
    assert allowance is not None
    day = allowance.day_remaining
    if card is not None and card.daily_limit is not None:
        day = min(day, max(card.daily_limit - card.get_usage(state.today)[0], 0))
    return RemainingLimits(
        transaction=allowance.limits.max_transaction, day=day, month=allowance.month_remaining
    )


def _fail_on_pin(_stored: PinState, _pin: str) -> bool:
    raise AssertionError("an assessment does not verify PINs")
