"""What would be said of a transaction if it were asked for now: every objection, not only the
first. Nothing is moved, recorded or counted, and by the time it is asked for it may be different.
"""

import msgspec

from tapgate.ledger import chart, checks
from tapgate.ledger.case import No, open_case
from tapgate.ledger.commands import Command, Party, subscriber
from tapgate.ledger.pin_tries import PinState
from tapgate.ledger.state import Match, State

#: The other side, which is not known.
_SOMEBODY = Party("account", 0)


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    fee: int
    fee_payer: str  # sender or receiver
    objections: tuple[No, ...] = ()  # state, limits, compliance
    shortage: No | None = None  # of the sender's funds
    matches: tuple[Match, ...] = ()  # the compliance rules that it matches, whatever they do


def order_of(transaction_type: str, amount: int, subscriber_id: int) -> Command:
    """The subscriber sends it or, where subscribers only receive, gets it."""
    sends = transaction_type not in chart.RECEIVED_TYPES
    own = subscriber(subscriber_id)
    return Command(
        type=transaction_type,
        channel="api",
        payer=own if sends else _SOMEBODY,
        payee=_SOMEBODY if sends else own,
        amount=amount,
    )


def assess(state: State, order: Command) -> Assessment:
    case = open_case(state, order, _no_pin)
    if case.payer is not None:
        asked, shortage = checks.OF_THE_SENDER, checks.funds(case)
    elif case.payee is not None:
        asked, shortage = checks.OF_THE_RECEIVER, None
    else:
        nobody = No(chart.HOLDER_CODES[chart.WALLET].not_found)
        return Assessment(fee=case.fee, fee_payer=case.fee_payer, objections=(nobody,))
    objections = [objection for check in asked if (objection := check(case)) is not None]
    return Assessment(
        fee=case.fee,
        fee_payer=case.fee_payer,
        objections=tuple(objections),
        shortage=shortage,
        matches=tuple(case.matches),
    )


def _no_pin(_stored: PinState, _pin: str) -> bool:
    raise AssertionError("an assessment tries no PIN")
