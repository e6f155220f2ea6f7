"""The table of commands: what each needs, asks, calls and tells, in order."""

from collections.abc import Mapping
from typing import Final

from tapgate.messenger.conversation.flows import (
    account,
    cards,
    identity,
    money,
    orientation,
    wallet,
)
from tapgate.messenger.conversation.pieces import Flow
from tapgate.messenger.model.kinds import Command

FLOWS: Final[Mapping[Command, Flow]] = {
    flow.command: flow
    for flow in (
        *orientation.FLOWS,
        *wallet.FLOWS,
        *money.FLOWS,
        *cards.FLOWS,
        *account.FLOWS,
        *identity.FLOWS,
    )
}
