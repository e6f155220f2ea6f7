"""Command table: the script for each command."""

from collections.abc import Mapping
from typing import Final

from tapgate.messenger.conversation.commands import (
    account,
    agents,
    cards,
    cash_outs,
    general,
    kyc,
    messages,
    pin_reset,
    proofs,
    questions,
    support,
    transfer,
    undo,
    wallet,
)
from tapgate.messenger.conversation.steps import Script
from tapgate.messenger.model import Command

SCRIPTS: Final[Mapping[Command, Script]] = {
    script.command: script
    for script in (
        *general.SCRIPTS,
        *wallet.SCRIPTS,
        *transfer.SCRIPTS,
        *cards.SCRIPTS,
        *account.SCRIPTS,
        *pin_reset.SCRIPTS,
        *kyc.SCRIPTS,
        *support.SCRIPTS,
        *questions.SCRIPTS,
        *undo.SCRIPTS,
        *proofs.SCRIPTS,
        *messages.SCRIPTS,
        *agents.SCRIPTS,
        *cash_outs.SCRIPTS,
    )
}
