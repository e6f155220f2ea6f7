"""Replies to small talk: courtesies and questions that only need an explanation."""

from tapgate.messenger.conversation import interpreter
from tapgate.messenger.conversation.steps import AskStep
from tapgate.messenger.conversation.turn import Turn
from tapgate.messenger.understanding import resolver
from tapgate.messenger.understanding.small_talk import classify_small_talk


def handle(turn: Turn, text: str) -> bool:
    """Reply to small talk; return False if the text is not small talk in the current state."""
    has_question = interpreter.get_current_step(turn) is not None
    match classify_small_talk(text):
        case "greeting" if has_question:
            interpreter.reply_and_repeat_question(turn, "greeting_in_progress")
        case "thanks" | "fees" as key if has_question:
            interpreter.reply_and_repeat_question(turn, key)
        case "thanks":
            turn.add_reply("thanks")
        case "fees":
            turn.suggest_commands(turn.translate("fees"), "send", "menu")
        case "farewell" if not has_question and not _accepts_suggestion(turn, text):
            turn.update(suggested=None)
            turn.add_reply("goodbye")
        case "forgotten_pin" if _can_interrupt(turn):
            interpreter.abandon_command(turn)
            turn.suggest_commands(
                turn.translate("pin.forgotten"), "person", "change_pin", "menu", yes="person"
            )
        case "take_back" if not has_question:
            turn.suggest_commands(
                turn.translate("send.reversal"), "person", "history", "menu", yes="person"
            )
        case "lost_phone" if _can_interrupt(turn):
            interpreter.begin_command(turn, "person", text)
        case _:
            return False
    return True


def _accepts_suggestion(turn: Turn, text: str) -> bool:
    return turn.conversation.suggested is not None and resolver.match_command(text) == "yes"


def _can_interrupt(turn: Turn) -> bool:
    """Return False if the open question accepts text: the text is more likely an answer to it."""
    step = interpreter.get_current_step(turn)
    return not isinstance(step, AskStep) or step.parse_text is None
