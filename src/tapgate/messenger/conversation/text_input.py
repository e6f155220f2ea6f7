"""Text messages, interpreted as a PIN, a command, an answer or a guessed intent, in this order."""

import re
import unicodedata
from typing import Final

from tapgate.messenger.conversation import (
    buttons,
    interpreter,
    keywords,
    option_matching,
    small_talk,
)
from tapgate.messenger.conversation.commands import SCRIPTS
from tapgate.messenger.conversation.steps import (
    PIN_PATTERN,
    AskStep,
    ConfirmStep,
    PinInput,
    PinStep,
    Step,
)
from tapgate.messenger.conversation.turn import Turn
from tapgate.messenger.model.common import Command
from tapgate.messenger.model.events import Intent, OptionChosen, TextMessage
from tapgate.messenger.understanding import reading
from tapgate.messenger.understanding.secret_detection import may_contain_pin

_DIGITS_PATTERN: Final = re.compile(r"[0-9]+")
_MIN_SERIAL_DIGITS: Final = 4
#: Commands whose keywords never name an option.
_RESERVED_COMMANDS: Final = frozenset({"menu", "help", "yes", "no", "cancel"})


def handle(turn: Turn, event: TextMessage) -> None:
    if turn.person.language is None and event.intent.language is not None:
        turn.set_language(event.intent.language)
    if event.text is None:
        turn.add_reply("withheld")
        interpreter.repeat_question(turn)
        return
    text = event.text.strip()
    exact = keywords.match_command(text)
    step = interpreter.get_current_step(turn)
    if isinstance(step, PinStep):
        if not small_talk.handle(turn, text):
            command = exact or _infer_command_at_pin_step(event.intent, text)
            _handle_pin_text(turn, step, text, command, is_late=event.is_late)
    elif (step.looks_like_pin if isinstance(step, AskStep) else may_contain_pin)(text):
        turn.add_reply("pin.unsolicited")
        interpreter.repeat_question(turn)
    elif small_talk.handle(turn, text) or _handle_option_text(
        turn, exact, text, is_late=event.is_late
    ):
        return
    elif exact is not None and not _handle_answer_to_own_command(turn, exact, text):
        _run_command(turn, exact, text, is_late=event.is_late)
    elif exact is None and not _handle_answer(turn, text, is_late=event.is_late):
        _handle_intent(turn, event.intent, text)


def _handle_pin_text(
    turn: Turn, step: PinStep, text: str, command: Command | None, *, is_late: bool
) -> None:
    pins = _parse_pins(text, step)
    if command is not None:
        _run_command(turn, command, text, is_late=is_late)
        return
    if pins is not None and turn.context.pin_entry_mode == "text" and not is_late:
        interpreter.submit_pin(turn, step, pins)
        return
    if may_contain_pin(text) and turn.context.pin_entry_mode != "text":
        turn.add_reply("pin.not_as_text")
    elif is_late:
        turn.add_reply("late")
    elif step.form == "change_pin" and PIN_PATTERN.fullmatch(text):
        turn.add_reply("not_understood.both_pins")
    else:
        turn.add_reply("not_understood.pin")
    interpreter.repeat_question(turn)


def _infer_command_at_pin_step(intent: Intent, text: str) -> Command | None:
    """Return the guessed command, or None if acting on the guess would be unsafe.

    A guess may end the command in progress but never continue it or send money. A text with digits
    may be a PIN and is never treated as a command.
    """
    if intent.command in ("send", "yes") or may_contain_pin(text) or _DIGITS_PATTERN.search(text):
        return None
    return intent.command


def _handle_option_text(turn: Turn, exact: Command | None, text: str, *, is_late: bool) -> bool:
    """Choose the offered option that the text names. Return False if it names none."""
    options = turn.conversation.offer
    if (
        options is None
        or exact in _RESERVED_COMMANDS
        or isinstance(interpreter.get_current_step(turn), ConfirmStep)
    ):
        return False
    option = option_matching.match_option(options, text)
    if option is None:
        return False
    buttons.handle(turn, OptionChosen(id=option.id, is_late=is_late))
    return True


def _parse_pins(text: str, step: PinStep) -> PinInput | None:
    """Return the PINs in the text, or None unless it has exactly the requested number of them.

    Any other digits in the text also make the result None.
    """
    numbers = _DIGITS_PATTERN.findall(unicodedata.normalize("NFKC", text))
    expected_count = 2 if step.form == "change_pin" else 1
    if (
        not may_contain_pin(text)
        or len(numbers) != expected_count
        or not all(map(PIN_PATTERN.fullmatch, numbers))
    ):
        return None
    return PinInput(pin=numbers[0], new_pin=numbers[-1])


def _handle_answer_to_own_command(turn: Turn, command: Command, text: str) -> bool:
    """Apply a command keyword as an answer to the same command, for example "French"."""
    step = interpreter.get_current_step(turn)
    if (
        command != turn.conversation.command
        or not isinstance(step, AskStep)
        or step.parse_text is None
    ):
        return False
    return interpreter.apply_answer(turn, step, step.parse_text(turn, text))


def _handle_answer(turn: Turn, text: str, *, is_late: bool) -> bool:
    """Apply the text to the last question or offer. Return False if neither accepts text."""
    options, number = turn.conversation.offer, reading.parse_list_number(text)
    if options is not None and text.casefold() == options.more.title.casefold():
        buttons.handle(turn, OptionChosen(id=options.more.id))
        return True
    if options is not None and number is not None and 1 <= number <= len(options.options):
        buttons.handle(turn, OptionChosen(id=options.options[number - 1].id, is_late=is_late))
        return True
    step = interpreter.get_current_step(turn)
    if step is None and options is not None and _is_bare_number(turn, text):
        turn.replies.append(options)
        turn.prepend_to_last_reply("option_not_listed")
        return True
    if not isinstance(step, AskStep) or step.parse_text is None:
        return False
    if not interpreter.apply_answer(turn, step, step.parse_text(turn, text)):
        _reply_not_understood(turn, step)
    return True


def _is_bare_number(turn: Turn, text: str) -> bool:
    is_number = reading.parse_list_number(text) is not None or text.isdecimal()
    return is_number and reading.parse_payee(text, turn.person.phone) is None


def _reply_not_understood(turn: Turn, step: Step) -> None:
    turn.add_reply(step.not_understood_key, currency=turn.context.currency)
    interpreter.repeat_question(turn)


def _handle_intent(turn: Turn, intent: Intent, text: str) -> None:
    """Act on the guessed intent of a text when the open question accepts no text."""
    if _is_bare_number(turn, text):
        intent = Intent()
    transfer = reading.parse_transfer(text, turn.person.phone, turn.context.currency)
    step = interpreter.get_current_step(turn)
    names_payee = bool(transfer.phone or transfer.card_serial)
    if step is None and _is_bare_payee(turn, text):
        interpreter.begin_command(turn, "send", text)
    elif intent.command is not None and not (
        step and _is_continuation(turn, intent.command, names_payee=names_payee)
    ):
        _run_command(turn, intent.command, text, is_late=True)
    elif step is not None:
        _reply_not_understood(turn, step)
    elif transfer.amount is not None and names_payee:
        interpreter.begin_command(turn, "send", text)
    elif candidates := [command for command in intent.candidates if command in SCRIPTS][:3]:
        yes, key = (
            (candidates[0], "did_you_mean.one") if len(candidates) == 1 else (None, "did_you_mean")
        )
        turn.suggest_commands(turn.translate(key), *candidates, yes=yes)
    else:
        turn.suggest_commands(turn.translate("not_understood"), "menu", "help")


def _is_bare_payee(turn: Turn, text: str) -> bool:
    """Return whether the text is only a payee.

    That is a phone number starting with 0 or +, or a card serial with enough digits not to be a
    word.
    """
    if text.startswith(("0", "+")):
        return reading.parse_phone(text, turn.person.phone) is not None
    transfer = reading.parse_transfer(text, None, turn.context.currency)
    is_alone = len(text.split()) == 1 and transfer.card_serial is not None
    return is_alone and sum(char.isdigit() for char in text) >= _MIN_SERIAL_DIGITS


def _is_continuation(turn: Turn, command: Command, *, names_payee: bool) -> bool:
    """Return whether a guessed command must not start.

    A guess never counts as yes, and restarts the command in progress only if the text names a
    payee.
    """
    return command == "yes" or (command == turn.conversation.command and not names_payee)


def _run_command(turn: Turn, command: Command, text: str, *, is_late: bool) -> None:
    match command:
        case "yes":
            _handle_yes(turn, is_late=is_late)
        case "no" | "cancel":
            interpreter.cancel_command(turn)
        case _:
            interpreter.begin_command(turn, command, text)


def _handle_yes(turn: Turn, *, is_late: bool) -> None:
    step = interpreter.get_current_step(turn)
    if isinstance(step, ConfirmStep) and not is_late:
        interpreter.choose_option(turn, "yes")
        return
    suggested = turn.conversation.suggested
    if step is None and suggested is not None and not is_late:
        interpreter.begin_command(turn, suggested)
        return
    if step is None:
        turn.add_reply("nothing_pending")
    elif isinstance(step, ConfirmStep):
        turn.add_reply("late")
    interpreter.repeat_question(turn)
