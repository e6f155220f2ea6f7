"""Replies to small talk: courtesies and questions that only need an explanation."""

from tapgate.messenger.conversation import interpreter
from tapgate.messenger.conversation.steps import AskStep
from tapgate.messenger.conversation.turn import Turn
from tapgate.messenger.understanding import resolver
from tapgate.messenger.understanding.small_talk import classify_small_talk


def handle(turn: Turn, text: str) -> bool:
    """Reply to small talk; return False if the text is not small talk in the current state."""
    match classify_small_talk(text):
        case "greeting" if interpreter.get_current_step(turn) is not None:
            interpreter.reply_and_repeat_question(turn, "greeting_in_progress")
        case "thanks":
            _reply(turn, "thanks")
        case "fees":
            _reply_with_fees(turn)
        case "farewell" if _is_farewell(turn, text):
            turn.update(suggested=None)
            turn.add_reply("goodbye")
        case "forgotten_pin" if _can_interrupt(turn):
            interpreter.abandon_command(turn)
            turn.suggest_commands(
                turn.translate("pin.forgotten"), "person", "change_pin", "menu", yes="person"
            )
        case "take_back" if interpreter.get_current_step(turn) is None:
            turn.suggest_commands(
                turn.translate("send.reversal"), "person", "history", "menu", yes="person"
            )
        case "lost_phone" if _can_interrupt(turn):
            interpreter.begin_command(turn, "person", text)
        case _:
            return False
    return True


def _reply(turn: Turn, key: str) -> None:
    if interpreter.get_current_step(turn) is None:
        turn.add_reply(key)
    else:
        interpreter.reply_and_repeat_question(turn, key)


def _reply_with_fees(turn: Turn) -> None:
    if interpreter.get_current_step(turn) is None:
        turn.suggest_commands(turn.translate("fees"), "send", "menu")
    else:
        interpreter.reply_and_repeat_question(turn, "fees")


def _is_farewell(turn: Turn, text: str) -> bool:
    """Return whether no question is open and the text is not a yes to a suggested command."""
    says_yes = resolver.match_command(text) == "yes"
    is_open = interpreter.get_current_step(turn) is not None
    return not is_open and not (says_yes and turn.conversation.suggested)


def _can_interrupt(turn: Turn) -> bool:
    """Return False if the open question accepts text: the text is more likely an answer to it."""
    step = interpreter.get_current_step(turn)
    return not isinstance(step, AskStep) or step.parse_text is None
