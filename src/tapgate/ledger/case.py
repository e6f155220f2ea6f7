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
    commission: int = 0
    pins: list[PinState] = []
    wrong_pin_of: Account | None = None  # a wallet
    matches: list[Match] = []

    @property
    def total(self) -> int:
        """What the payer needs."""
        return self.amount + (self.fee if self.fee_payer == "sender" else 0)

    @property
    def credited(self) -> int:
        return self.amount - (self.fee if self.fee_payer == "receiver" else 0)

    @property
    def returned_fee(self) -> int:
        """The refund that completes a payment's amount also returns the fee to the processor."""
        if self.original is None:
            return 0
        remaining = self.original.amount - self.original.refunded_amount
        return self.original.fee_amount if self.amount == remaining else 0

    @property
    def counts(self) -> bool:
        return (
            self.command.type in chart.COUNTED_TYPES
            and self.payer is not None
            and self.payer.kind == chart.WALLET
        )

    def limits(self) -> AccountRule | None:
        """The limits of the payer, where the payer has any."""
        if self.payer is None or self.payer.kyc_level is None:
            return None
        return self.state.rules.limits[self.payer.kyc_level]

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
    fee, fee_payer = state.rules.fee(command.type, amount)
    if any(side is not None and side.owner_id is None for side in (payer, payee)):
        fee = 0  # the platform does not charge itself
    case = Case(
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
        pins=[],
        matches=[],
    )
    if command.type == chart.AGENT_CASHIN and payer is not None and payer.owner_id is not None:
        case.commission = state.rules.commission(
            state.agents[payer.owner_id].commission_tier, amount
        )
    return case
