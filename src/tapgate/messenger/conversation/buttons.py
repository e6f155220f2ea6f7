"""Handling of options chosen by button, list row or text.

Command options work at any time. Other options work only while they are the last ones offered.
"""

from typing import Final

import msgspec

from tapgate.messenger.conversation import interpreter
from tapgate.messenger.conversation.commands import SCRIPTS
from tapgate.messenger.conversation.turn import Turn
from tapgate.messenger.model import Command, OptionChosen

#: Number of options the channel shows before "More".
_PAGE_SIZE: Final = 9


def handle(turn: Turn, event: OptionChosen) -> None:
    options = turn.conversation.offer
    kind, _, command = event.id.partition(":")
    if kind == "cmd" and command in SCRIPTS:
        interpreter.begin_command(turn, msgspec.convert(command, Command))
    elif options is not None and event.id == options.more.id:
        start = options.start + _PAGE_SIZE
        next_page = msgspec.structs.replace(
            options, start=start if start < len(options.options) else 0
        )
        turn.update(offer=next_page)
        turn.replies.append(next_page)
    elif options is None or event.id not in {option.id for option in options.options}:
        interpreter.repeat_question(turn, "expired")
    elif event.is_late and turn.conversation.stage == "confirm":
        interpreter.repeat_question(turn, "late")
    elif turn.conversation.stage == "idle":
        _save_recipient(turn)
    else:
        interpreter.choose_option(turn, event.id.rpartition("#")[0])


def _save_recipient(turn: Turn) -> None:
    """Save the recipient of the last transfer: the only non-command option offered while idle."""
    recipient = turn.conversation.met
    turn.update(met=None, offer=None)
    if recipient is None:
        interpreter.repeat_question(turn, "expired")
        return
    turn.save_recipient(recipient)
    first_name = recipient.name.partition(" ")[0]
    turn.suggest_commands(turn.translate("send.contact_saved", name=first_name), "send", "menu")
