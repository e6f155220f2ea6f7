"""Answers to what is no command and no answer: courtesies, and what only has to be explained."""

from tapgate.messenger.conversation import interpreter, keywords
from tapgate.messenger.conversation.steps import AskStep
from tapgate.messenger.conversation.turn import Turn
from tapgate.messenger.understanding.small_talk import classify_small_talk


def handle(scene: Turn, text: str) -> bool:
    """Whether it was such a thing; then it was answered."""
    match classify_small_talk(text):
        case "greeting" if interpreter.get_current_step(scene) is not None:
            interpreter.reply_and_repeat_question(scene, "hello_again")
        case "thanks":
            _reply(scene, "thanks")
        case "fees":
            _reply_with_fees(scene)
        case "farewell" if _is_farewell(scene, text):
            scene.update(suggested=None)
            scene.add_reply("farewell")
        case "forgotten_pin" if _can_interrupt(scene):
            interpreter.abandon_command(scene)
            scene.suggest_commands(
                scene.translate("pin.forgotten"), "person", "change_pin", "menu", yes="person"
            )
        case "take_back" if interpreter.get_current_step(scene) is None:
            scene.suggest_commands(
                scene.translate("send.take_back"), "person", "history", "menu", yes="person"
            )
        case "lost_phone" if _can_interrupt(scene):
            interpreter.begin_command(scene, "person", text)
        case _:
            return False
    return True


def _reply(scene: Turn, key: str) -> None:
    if interpreter.get_current_step(scene) is None:
        scene.add_reply(key)
    else:
        interpreter.reply_and_repeat_question(scene, key)


def _reply_with_fees(scene: Turn) -> None:
    if interpreter.get_current_step(scene) is None:
        scene.suggest_commands(scene.translate("fees"), "send", "menu")
    else:
        interpreter.reply_and_repeat_question(scene, "fees")


def _is_farewell(scene: Turn, text: str) -> bool:
    """ "OK" is a yes where there is something to say yes to."""
    says_yes = keywords.match_command(text) == "yes"
    is_open = interpreter.get_current_step(scene) is not None
    return not is_open and not (says_yes and scene.conversation.suggested)


def _can_interrupt(scene: Turn) -> bool:
    """What is asked for in words is rather answered by them."""
    piece = interpreter.get_current_step(scene)
    return not isinstance(piece, AskStep) or piece.parse_text is None
