"""One command with everything that was found about it, and the objections there can be."""

from typing import Any, NamedTuple

import msgspec

from tapgate import money
from tapgate.errors import Code
from tapgate.ledger import chart
from tapgate.ledger.commands import Command
from tapgate.ledger.pin_tries import PinCheck, PinState
from tapgate.ledger.rules import AccountRule
from tapgate.ledger.state import Account, Card, Match, Recorded, State


class No(NamedTuple):
    """An objection. A decline is recorded as a failed transaction and uses up the request id; a
    refusal leaves nothing behind."""

    code: Code
    details: dict[str, Any] | None = None
    recorded: bool = False


class Case(msgspec.Struct, kw_only=True, gc=False):
    """One command with everything that was found about it."""

    state: State
    command: Command
    is_right_pin: PinCheck
    payer: Account | None
    payer_card: Card | None
    payee: Account | None
    payee_card: Card | None
    original: Recorded | None
    amount: int
    fee: int
    fee_payer: str
    total: int  # what the payer needs
    credited: int
    returned_fee: int  # by the refund that completes a payment's amount, to the processor
    limits: AccountRule | None  # of the payer, where the payer has any
    counts: bool  # against them
    pins: list[PinState] = []
    wrong_pin_of: Account | None = None  # a wallet
    matches: list[Match] = []

    def over(self, code: Code, *, limit: int, used: int) -> No:
        show = self.state.rules.currency
        return No(
            code,
            {
                "limit": money.plain(limit, show),
                "used": money.plain(used, show),
                "attempted": money.plain(self.amount, show),
            },
            recorded=True,
        )


def open_case(state: State, command: Command, is_right_pin: PinCheck) -> Case:
    rules = state.rules
    payer, payer_card = state.find(command.payer)
    payee, payee_card = state.find(command.payee)
    original = None
    if command.type == chart.REFUND and command.original_id is not None:
        original = state.recorded.get(command.original_id)
        payee = state.accounts.get(original.from_account or 0) if original else None
    amount = command.amount
    if amount is None:
        if original is not None:
            amount = original.amount - original.refunded_amount
        else:
            amount = payer.available if payer is not None else 0
    fee, fee_payer = rules.fee(command.type, amount)
    if _is_the_platforms(payer) or _is_the_platforms(payee):
        fee = 0  # the platform does not charge itself
    level = payer.kyc_level if payer is not None else None
    return Case(
        state=state,
        command=command,
        is_right_pin=is_right_pin,
        payer=payer,
        payer_card=payer_card,
        payee=payee,
        payee_card=payee_card,
        original=original,
        amount=amount,
        fee=fee,
        fee_payer=fee_payer,
        total=amount + (fee if fee_payer == "sender" else 0),
        credited=amount - (fee if fee_payer == "receiver" else 0),
        returned_fee=_returned_fee(original, amount) if original is not None else 0,
        limits=rules.limits[level] if level is not None else None,
        counts=level is not None and command.type in chart.COUNTED_TYPES,
        pins=[],
        matches=[],
    )


def _is_the_platforms(account: Account | None) -> bool:
    return account is not None and account.owner_id is None


def _returned_fee(original: Recorded, amount: int) -> int:
    remaining = original.amount - original.refunded_amount
    return original.fee_amount if amount == remaining else 0
