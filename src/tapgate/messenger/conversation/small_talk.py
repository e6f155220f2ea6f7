"""Replies to small talk: courtesies and questions that only need an explanation."""

from tapgate.messenger.conversation import interpreter, keywords
from tapgate.messenger.conversation.steps import AskStep
from tapgate.messenger.conversation.turn import Turn
from tapgate.messenger.understanding.small_talk import classify_small_talk


def handle(scene: Turn, text: str) -> bool:
    """Reply to small talk. Return False if the text is not small talk."""
    match classify_small_talk(text):
        case "greeting" if interpreter.get_current_step(scene) is not None:
            interpreter.reply_and_repeat_question(scene, "greeting_in_progress")
        case "thanks":
            _reply(scene, "thanks")
        case "fees":
            _reply_with_fees(scene)
        case "farewell" if _is_farewell(scene, text):
            scene.update(suggested=None)
            scene.add_reply("goodbye")
        case "forgotten_pin" if _can_interrupt(scene):
            interpreter.abandon_command(scene)
            scene.suggest_commands(
                scene.translate("pin.forgotten"), "person", "change_pin", "menu", yes="person"
            )
        case "take_back" if interpreter.get_current_step(scene) is None:
            scene.suggest_commands(
                scene.translate("send.reversal"), "person", "history", "menu", yes="person"
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
    """Return whether the text ends the chat. "OK" means yes while a suggestion is pending."""
    says_yes = keywords.match_command(text) == "yes"
    is_open = interpreter.get_current_step(scene) is not None
    return not is_open and not (says_yes and scene.conversation.suggested)


def _can_interrupt(scene: Turn) -> bool:
    """Return False while a question accepts text, because the text is more likely its answer."""
    piece = interpreter.get_current_step(scene)
    return not isinstance(piece, AskStep) or piece.parse_text is None
