"""Answers to what is no command and no answer: courtesies, and what only has to be explained."""

from tapgate.messenger.conversation import interpreter, words
from tapgate.messenger.conversation.pieces import Ask
from tapgate.messenger.conversation.scene import Scene
from tapgate.messenger.understanding.remarks import remark


def hear(scene: Scene, text: str) -> bool:
    """Whether it was such a thing; then it was answered."""
    match remark(text):
        case "greeting" if interpreter.current(scene) is not None:
            interpreter.repeat(scene, "hello_again")
        case "thanks":
            _answer(scene, "thanks")
        case "fees":
            _tell_fees(scene)
        case "farewell" if _is_farewell(scene, text):
            scene.change(suggested=None)
            scene.say("farewell")
        case "forgotten_pin" if _may_leave(scene):
            interpreter.leave(scene)
            scene.suggest(scene.text("pin.forgotten"), "person", "change_pin", "menu", yes="person")
        case "take_back" if interpreter.current(scene) is None:
            scene.suggest(scene.text("send.take_back"), "person", "history", "menu", yes="person")
        case "lost_phone" if _may_leave(scene):
            interpreter.begin(scene, "person", text)
        case _:
            return False
    return True


def _answer(scene: Scene, key: str) -> None:
    if interpreter.current(scene) is None:
        scene.say(key)
    else:
        interpreter.repeat(scene, key)


def _tell_fees(scene: Scene) -> None:
    if interpreter.current(scene) is None:
        scene.suggest(scene.text("fees"), "send", "menu")
    else:
        interpreter.repeat(scene, "fees")


def _is_farewell(scene: Scene, text: str) -> bool:
    """ "OK" is a yes where there is something to say yes to."""
    says_yes = words.command(text) == "yes"
    is_open = interpreter.current(scene) is not None
    return not is_open and not (says_yes and scene.conversation.suggested)


def _may_leave(scene: Scene) -> bool:
    """What is asked for in words is rather answered by them."""
    piece = interpreter.current(scene)
    return not isinstance(piece, Ask) or piece.read is None
