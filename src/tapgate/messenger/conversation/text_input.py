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


def handle(scene: Turn, event: TextMessage) -> None:
    if scene.person.language is None and event.intent.language is not None:
        scene.set_language(event.intent.language)
    if event.text is None:
        scene.add_reply("withheld")
        interpreter.repeat_question(scene)
        return
    text = event.text.strip()
    exact = keywords.match_command(text)
    piece = interpreter.get_current_step(scene)
    if isinstance(piece, PinStep):
        if not small_talk.handle(scene, text):
            command = exact or _infer_command_at_pin_step(event.intent, text)
            _handle_pin_text(scene, piece, text, command, late=event.is_late)
    elif (piece.looks_like_pin if isinstance(piece, AskStep) else may_contain_pin)(text):
        scene.add_reply("pin.unsolicited")
        interpreter.repeat_question(scene)
    elif small_talk.handle(scene, text) or _handle_option_text(
        scene, exact, text, late=event.is_late
    ):
        return
    elif exact is not None and not _handle_answer_to_own_command(scene, exact, text):
        _run_command(scene, exact, text, late=event.is_late)
    elif exact is None and not _handle_answer(scene, text, late=event.is_late):
        _handle_intent(scene, event.intent, text)


def _handle_pin_text(
    scene: Turn, piece: PinStep, text: str, command: Command | None, *, late: bool
) -> None:
    pins = _parse_pins(text, piece)
    if command is not None:
        _run_command(scene, command, text, late=late)
        return
    if pins is not None and scene.context.pin_entry_mode == "text" and not late:
        interpreter.submit_pin(scene, piece, pins)
        return
    if may_contain_pin(text) and scene.context.pin_entry_mode != "text":
        scene.add_reply("pin.not_as_text")
    elif late:
        scene.add_reply("late")
    elif piece.form == "change_pin" and PIN_PATTERN.fullmatch(text):
        scene.add_reply("not_understood.both_pins")
    else:
        scene.add_reply("not_understood.pin")
    interpreter.repeat_question(scene)


def _infer_command_at_pin_step(meaning: Intent, text: str) -> Command | None:
    """Return the guessed command, or None if acting on the guess would be unsafe.

    A guess may end the command in progress but never continue it or send money. A text with digits
    may be a PIN and is never treated as a command.
    """
    if meaning.command in ("send", "yes") or may_contain_pin(text) or _DIGITS_PATTERN.search(text):
        return None
    return meaning.command


def _handle_option_text(scene: Turn, exact: Command | None, text: str, *, late: bool) -> bool:
    """Choose the offered option that the text names. Return False if it names none."""
    offer = scene.conversation.offer
    if (
        offer is None
        or exact in _RESERVED_COMMANDS
        or isinstance(interpreter.get_current_step(scene), ConfirmStep)
    ):
        return False
    option = option_matching.match_option(offer, text)
    if option is None:
        return False
    buttons.handle(scene, OptionChosen(id=option.id, is_late=late))
    return True


def _parse_pins(text: str, piece: PinStep) -> PinInput | None:
    """Return the PINs in the text, or None unless it has exactly the requested number of them.

    Any other digits in the text also make the result None.
    """
    figures = _DIGITS_PATTERN.findall(unicodedata.normalize("NFKC", text))
    asked = 2 if piece.form == "change_pin" else 1
    if (
        not may_contain_pin(text)
        or len(figures) != asked
        or not all(map(PIN_PATTERN.fullmatch, figures))
    ):
        return None
    return PinInput(pin=figures[0], new_pin=figures[-1])


def _handle_answer_to_own_command(scene: Turn, command: Command, text: str) -> bool:
    """Apply a command keyword as an answer to the same command, for example "French"."""
    piece = interpreter.get_current_step(scene)
    if (
        command != scene.conversation.command
        or not isinstance(piece, AskStep)
        or piece.parse_text is None
    ):
        return False
    return interpreter.apply_answer(scene, piece, piece.parse_text(scene, text))


def _handle_answer(scene: Turn, text: str, *, late: bool) -> bool:
    """Apply the text to the last question or offer. Return False if neither accepts text."""
    offer, number = scene.conversation.offer, reading.parse_list_number(text)
    if offer is not None and text.casefold() == offer.more.title.casefold():
        buttons.handle(scene, OptionChosen(id=offer.more.id))
        return True
    if offer is not None and number is not None and 1 <= number <= len(offer.options):
        buttons.handle(scene, OptionChosen(id=offer.options[number - 1].id, is_late=late))
        return True
    piece = interpreter.get_current_step(scene)
    if piece is None and offer is not None and _is_bare_number(scene, text):
        scene.replies.append(offer)
        scene.prepend_to_last_reply("option_not_listed")
        return True
    if not isinstance(piece, AskStep) or piece.parse_text is None:
        return False
    if not interpreter.apply_answer(scene, piece, piece.parse_text(scene, text)):
        _reply_not_understood(scene, piece)
    return True


def _is_bare_number(scene: Turn, text: str) -> bool:
    is_number = reading.parse_list_number(text) is not None or text.isdecimal()
    return is_number and reading.parse_payee(text, scene.person.phone) is None


def _reply_not_understood(scene: Turn, piece: Step) -> None:
    scene.add_reply(piece.not_understood_key, currency=scene.context.currency)
    interpreter.repeat_question(scene)


def _handle_intent(scene: Turn, meaning: Intent, text: str) -> None:
    """Act on the guessed intent of a text when the open question accepts no text."""
    if _is_bare_number(scene, text):
        meaning = Intent()
    order = reading.parse_transfer(text, scene.person.phone, scene.context.currency)
    piece = interpreter.get_current_step(scene)
    names_payee = bool(order.phone or order.card_serial)
    if piece is None and _is_bare_payee(scene, text):
        interpreter.begin_command(scene, "send", text)
    elif meaning.command is not None and not (
        piece and _is_continuation(scene, meaning.command, is_order=names_payee)
    ):
        _run_command(scene, meaning.command, text, late=True)
    elif piece is not None:
        _reply_not_understood(scene, piece)
    elif order.amount is not None and names_payee:
        interpreter.begin_command(scene, "send", text)
    elif maybe := [command for command in meaning.candidates if command in SCRIPTS][:3]:
        yes, key = (maybe[0], "did_you_mean.one") if len(maybe) == 1 else (None, "did_you_mean")
        scene.suggest_commands(scene.translate(key), *maybe, yes=yes)
    else:
        scene.suggest_commands(scene.translate("not_understood"), "menu", "help")


def _is_bare_payee(scene: Turn, text: str) -> bool:
    """Return whether the text is only a payee.

    That is a phone number starting with 0 or +, or a card serial with enough digits not to be a
    word.
    """
    if text.startswith(("0", "+")):
        return reading.parse_phone(text, scene.person.phone) is not None
    order = reading.parse_transfer(text, None, scene.context.currency)
    is_alone = len(text.split()) == 1 and order.card_serial is not None
    return is_alone and sum(sign.isdigit() for sign in text) >= _MIN_SERIAL_DIGITS


def _is_continuation(scene: Turn, command: Command, *, is_order: bool) -> bool:
    """Return whether a guessed command must not start.

    A guess does not restart the command in progress, unless it names a payee, and never counts as
    yes.
    """
    return command == "yes" or (command == scene.conversation.command and not is_order)


def _run_command(scene: Turn, command: Command, text: str, *, late: bool) -> None:
    match command:
        case "yes":
            _handle_yes(scene, late=late)
        case "no" | "cancel":
            interpreter.cancel_command(scene)
        case _:
            interpreter.begin_command(scene, command, text)


def _handle_yes(scene: Turn, *, late: bool) -> None:
    piece = interpreter.get_current_step(scene)
    if isinstance(piece, ConfirmStep) and not late:
        interpreter.choose_option(scene, "yes")
        return
    suggested = scene.conversation.suggested
    if piece is None and suggested is not None and not late:
        interpreter.begin_command(scene, suggested)
        return
    if piece is None:
        scene.add_reply("nothing_pending")
    elif isinstance(piece, ConfirmStep):
        scene.add_reply("late")
    interpreter.repeat_question(scene)
