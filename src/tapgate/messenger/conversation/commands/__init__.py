"""The table of commands: what each needs, asks, calls and tells, in order."""

from collections.abc import Mapping
from typing import Final

from tapgate.messenger.conversation.commands import (
    account,
    cards,
    identity,
    money,
    orientation,
    wallet,
)
from tapgate.messenger.conversation.pieces import Script
from tapgate.messenger.model.kinds import Command

SCRIPTS: Final[Mapping[Command, Script]] = {
    script.command: script
    for script in (
        *orientation.SCRIPTS,
        *wallet.SCRIPTS,
        *money.SCRIPTS,
        *cards.SCRIPTS,
        *account.SCRIPTS,
        *identity.SCRIPTS,
    )
}
