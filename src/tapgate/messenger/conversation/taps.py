"""What is tapped on: a command at any time, anything else while it is what was offered last."""

from typing import Final

import msgspec

from tapgate.messenger.conversation import interpreter
from tapgate.messenger.conversation.commands import SCRIPTS
from tapgate.messenger.conversation.scene import Scene
from tapgate.messenger.model.events import Chose
from tapgate.messenger.model.kinds import Command
from tapgate.messenger.model.people import KeepRecipient

#: How many options the channel shows before "More".
_PAGE: Final = 9


def hear(scene: Scene, event: Chose) -> None:
    offer = scene.conversation.offer
    kind, _, command = event.id.partition(":")
    if kind == "cmd" and command in SCRIPTS:
        interpreter.begin(scene, msgspec.convert(command, Command))
    elif offer is not None and event.id == offer.more.id:
        start = offer.start + _PAGE
        following = msgspec.structs.replace(offer, start=start if start < len(offer.options) else 0)
        scene.change(offer=following)
        scene.replies.append(following)
    elif offer is None or event.id not in {option.id for option in offer.options}:
        scene.say("expired")
        interpreter.ask_again(scene)
    elif event.late and scene.conversation.stage == "confirm":
        scene.say("late")
        interpreter.ask_again(scene)
    elif scene.conversation.stage == "idle":
        _keep(scene)
    else:
        interpreter.choose(scene, event.id.rpartition("#")[0])


def _keep(scene: Scene) -> None:
    """The only thing that is offered with no command at work, apart from commands."""
    met = scene.conversation.met
    scene.change(met=None, offer=None)
    if met is None:
        scene.say("expired")
        interpreter.ask_again(scene)
        return
    scene.effects.append(KeepRecipient(recipient=met))
    scene.suggest(scene.text("send.kept", name=met.name), "send", "menu")
