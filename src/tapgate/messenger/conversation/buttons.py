"""Button and list selections.

Command options work at any time. Other options work only while they are the last ones offered.
"""

from typing import Final

import msgspec

from tapgate.messenger.conversation import interpreter
from tapgate.messenger.conversation.commands import SCRIPTS
from tapgate.messenger.conversation.turn import Turn
from tapgate.messenger.model.common import Command
from tapgate.messenger.model.events import OptionChosen
from tapgate.messenger.model.people import SaveRecipient

#: Number of options the channel shows before "More".
_PAGE_SIZE: Final = 9


def handle(scene: Turn, event: OptionChosen) -> None:
    offer = scene.conversation.offer
    kind, _, command = event.id.partition(":")
    if kind == "cmd" and command in SCRIPTS:
        interpreter.begin_command(scene, msgspec.convert(command, Command))
    elif offer is not None and event.id == offer.more.id:
        start = offer.start + _PAGE_SIZE
        following = msgspec.structs.replace(offer, start=start if start < len(offer.options) else 0)
        scene.update(offer=following)
        scene.replies.append(following)
    elif offer is None or event.id not in {option.id for option in offer.options}:
        scene.add_reply("expired")
        interpreter.repeat_question(scene)
    elif event.is_late and scene.conversation.stage == "confirm":
        scene.add_reply("late")
        interpreter.repeat_question(scene)
    elif scene.conversation.stage == "idle":
        _save_recipient(scene)
    else:
        interpreter.choose_option(scene, event.id.rpartition("#")[0])


def _save_recipient(scene: Turn) -> None:
    """Save the recipient of the last payment: the only non-command option offered while idle."""
    met = scene.conversation.met
    scene.update(met=None, offer=None)
    if met is None:
        scene.add_reply("expired")
        interpreter.repeat_question(scene)
        return
    scene.effects.append(SaveRecipient(recipient=met))
    first_name = met.name.partition(" ")[0]
    scene.suggest_commands(scene.translate("send.contact_saved", name=first_name), "send", "menu")
