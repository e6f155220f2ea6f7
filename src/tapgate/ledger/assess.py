"""Dry run of a transaction for one subscriber, which reports every failed check.

PINs and the other party are not checked. Nothing is moved, stored or counted. The result may be out
of date by the time the transaction is submitted.
"""

import msgspec

from tapgate.ledger import chart, checks
from tapgate.ledger.commands import Command, Party, subscriber_party
from tapgate.ledger.context import Rejection, build_context
from tapgate.ledger.state import State
from tapgate.pins.lockout import PinState
from tapgate.rules.compliance import RuleMatch
from tapgate.schemas.transactions import Channel

#: Placeholder for the other party, which an assessment does not include.
_UNKNOWN_PARTY = Party("account", 0)


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    fee: int
    fee_payer: str  # sender or receiver
    rejections: tuple[Rejection, ...] = ()  # missing subscriber, status, limits, compliance
    insufficient_funds: Rejection | None = None
    matches: tuple[RuleMatch, ...] = ()  # all matching compliance rules, whatever their action


def build_command(transaction_type: str, amount: int, subscriber_id: int) -> Command:
    """Build a command with the subscriber as payer, or as payee for receive-only types."""
    is_payer = transaction_type not in chart.RECEIVE_ONLY_TYPES
    subscriber = subscriber_party(subscriber_id)
    return Command(
        type=transaction_type,
        channel=Channel.API,
        payer=subscriber if is_payer else _UNKNOWN_PARTY,
        payee=_UNKNOWN_PARTY if is_payer else subscriber,
        amount=amount,
    )


def assess(state: State, command: Command) -> Assessment:
    context = build_context(state, command, _fail_on_pin)
    if context.payer is not None:
        applicable_checks, insufficient_funds = checks.SENDER_CHECKS, checks.check_funds(context)
    elif context.payee is not None:
        applicable_checks, insufficient_funds = checks.RECEIVER_CHECKS, None
    else:
        not_found = Rejection(chart.HOLDER_ERROR_CODES[chart.WALLET].not_found)
        return Assessment(fee=context.fee, fee_payer=context.fee_payer, rejections=(not_found,))
    rejections = [
        rejection for check in applicable_checks if (rejection := check(context)) is not None
    ]
    return Assessment(
        fee=context.fee,
        fee_payer=context.fee_payer,
        rejections=tuple(rejections),
        insufficient_funds=insufficient_funds,
        matches=tuple(context.matches),
    )


def _fail_on_pin(_stored: PinState, _pin: str) -> bool:
    raise AssertionError("an assessment does not verify PINs")
