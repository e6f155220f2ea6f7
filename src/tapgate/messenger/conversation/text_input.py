"""Interpretation of text messages as a PIN, small talk, option, command, answer or intent."""

import re
import unicodedata
from typing import Final

from tapgate.messenger.conversation import interpreter, option_matching
from tapgate.messenger.conversation.commands import SCRIPTS, support
from tapgate.messenger.conversation.steps import (
    CODE_PATTERN,
    PIN_PATTERN,
    AskStep,
    ConfirmStep,
    PinInput,
    PinStep,
    Step,
)
from tapgate.messenger.conversation.turn import Turn
from tapgate.messenger.model import Command, Intent, OptionChosen, TextMessage
from tapgate.messenger.understanding import resolver
from tapgate.messenger.understanding.languages import detect_language
from tapgate.messenger.understanding.names import parse_list_number
from tapgate.messenger.understanding.normalization import normalize_text
from tapgate.messenger.understanding.safeguards import is_doubtful
from tapgate.messenger.understanding.secret_detection import (
    has_code,
    may_contain_code,
    may_contain_pin,
)
from tapgate.messenger.understanding.small_talk import classify_small_talk
from tapgate.messenger.understanding.tap_links import find_tap_url
from tapgate.messenger.understanding.transfers import parse_payee, parse_phone, parse_transfer

_DIGITS_PATTERN: Final = re.compile(r"[0-9]+")
_MIN_SERIAL_DIGITS: Final = 4
#: Commands whose keywords never name an option.
_RESERVED_COMMANDS: Final = frozenset({"menu", "help", "yes", "no", "cancel"})
#: Small talk that is passed on to support staff while a support request is open.
_SUPPORT_SMALL_TALK: Final = frozenset({"thanks", "farewell", "take_back"})


def handle(turn: Turn, event: TextMessage) -> None:
    _select_language(turn, event)
    if event.text is None:
        interpreter.repeat_question(turn, "withheld")
        return
    text = event.text.strip()
    exact_command = resolver.match_command(text)
    step = interpreter.get_current_step(turn)
    if find_tap_url(text) is not None:
        _handle_tap_link(turn, step, text)
    elif isinstance(step, PinStep):
        if not _handle_small_talk(turn, text):
            command = exact_command or _infer_command_at_pin_step(event.intent, text)
            _handle_pin_text(turn, step, text, command, is_late=event.is_late)
    elif step is None and has_code(text):
        interpreter.begin_command(turn, "reset_pin", text)
    elif (step.looks_like_pin if isinstance(step, AskStep) else may_contain_pin)(text):
        interpreter.repeat_question(turn, "pin.unsolicited")
    elif _continues_support_request(turn, text, exact_command):
        _pass_on(turn, text)
    elif (not _takes_any_text(step) and _handle_small_talk(turn, text)) or _handle_option_text(
        turn, exact_command, text, is_late=event.is_late
    ):
        return
    elif exact_command is not None and not _handle_keyword_as_answer(turn, exact_command, text):
        _run_command(turn, exact_command, text, is_late=event.is_late)
    elif exact_command is None and not _handle_answer(turn, text, is_late=event.is_late):
        _handle_intent(turn, event.intent, text)


def _handle_tap_link(turn: Turn, step: Step | None, text: str) -> None:
    """Take the link of a tapped card as the answer to a question about a card, or link the card."""
    if turn.conversation.command == "link" and isinstance(step, AskStep):
        answer = None if step.parse_text is None else step.parse_text(turn, text)
        if interpreter.apply_answer(turn, step, answer):
            return
    interpreter.begin_command(turn, "link", text)


def _select_language(turn: Turn, event: TextMessage) -> None:
    """Use the language of the first recognized words, and later that of a clear sentence."""
    if turn.person.language is None and event.intent.language is not None:
        turn.set_language(event.intent.language)
    detected = detect_language(event.text or "", is_sentence=True)
    if detected is not None and detected != turn.language:
        turn.set_language(detected)


def _continues_support_request(turn: Turn, text: str, command: Command | None) -> bool:
    """Return whether a text that the chat usually answers itself is meant for support staff."""
    if not _can_pass_on(turn, text) or turn.conversation.suggested is not None:
        return False
    return command in ("yes", "no") or classify_small_talk(text) in _SUPPORT_SMALL_TALK


def _can_pass_on(turn: Turn, text: str) -> bool:
    """Return whether the text, if it is not a command, can be passed on to support staff."""
    return (
        turn.person.support is not None
        and turn.person.phone is not None
        and interpreter.get_current_step(turn) is None
        and support.can_pass_on(text)
    )


def _pass_on(turn: Turn, text: str) -> None:
    request = support.build_follow_up(turn, text)
    interpreter.begin_with_request(turn, "person", support.FOLLOW_UP, request)


def _takes_any_text(step: Step | None) -> bool:
    return isinstance(step, AskStep) and step.takes_any_text


def _handle_small_talk(turn: Turn, text: str) -> bool:
    """Reply to small talk; return False if the text is not small talk in the current state."""
    has_question = interpreter.get_current_step(turn) is not None
    match classify_small_talk(text):
        case "greeting" if has_question:
            interpreter.reply_and_repeat_question(turn, "greeting_in_progress")
        case "thanks" if has_question:
            interpreter.reply_and_repeat_question(turn, "thanks")
        case "fees" if has_question and turn.conversation.command != "fees":
            interpreter.reply_and_repeat_question(turn, "fees.short")
        case "thanks":
            turn.add_reply("thanks")
        case "fees":
            interpreter.begin_command(turn, "fees", text)
        case "farewell" if not has_question and not _accepts_suggestion(turn, text):
            turn.update(suggested=None)
            turn.add_reply("goodbye")
        case "forgotten_pin" if _can_interrupt(turn):
            interpreter.begin_command(turn, "reset_pin", text)
        case "take_back" if not has_question:
            interpreter.begin_command(turn, "wrong_recipient")
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
        problem = "pin.not_as_text"
    elif may_contain_code(text) and step.form == "reset_pin" and not is_late:
        is_form = turn.context.pin_entry_mode == "form"
        problem = "reset_pin.use_form" if is_form else step.not_understood_key
    elif is_late:
        problem = "late"
    elif step.form == "change_pin" and PIN_PATTERN.fullmatch(text):
        problem = "not_understood.both_pins"
    else:
        problem = step.not_understood_key
    interpreter.repeat_question(turn, problem)


def _infer_command_at_pin_step(intent: Intent, text: str) -> Command | None:
    """Return the guessed command, or None if acting on the guess would be unsafe.

    A guess may end the command in progress but never continue it or send money. A text with digits
    may be a PIN and is never treated as a command.
    """
    if intent.command in ("send", "yes") or may_contain_pin(text) or _DIGITS_PATTERN.search(text):
        return None
    return intent.command


def _handle_option_text(
    turn: Turn, exact_command: Command | None, text: str, *, is_late: bool
) -> bool:
    """Choose the offered option that the text names; return False if no option was chosen."""
    offer = turn.conversation.offer
    if (
        offer is None
        or exact_command in _RESERVED_COMMANDS
        or isinstance(interpreter.get_current_step(turn), ConfirmStep)
    ):
        return False
    option = option_matching.match_option(offer, text)
    if option is None:
        return False
    interpreter.handle_option(turn, OptionChosen(id=option.id, is_late=is_late))
    return True


def _parse_pins(text: str, step: PinStep) -> PinInput | None:
    """Return the PINs in the text, or None if their number differs from the requested number.

    Also returns None if the text contains any other digits.
    """
    numbers = _DIGITS_PATTERN.findall(unicodedata.normalize("NFKC", text))
    code = None
    if step.form == "reset_pin":
        code = next((number for number in numbers if CODE_PATTERN.fullmatch(number)), None)
        if code is None:
            return None
        numbers.remove(code)
    expected_count = 2 if step.form == "change_pin" else 1
    if (
        not may_contain_pin(text)
        or len(numbers) != expected_count
        or not all(map(PIN_PATTERN.fullmatch, numbers))
    ):
        return None
    return PinInput(pin=numbers[0], new_pin=numbers[-1], code=code)


def _handle_keyword_as_answer(turn: Turn, command: Command, text: str) -> bool:
    """Treat a keyword of the command in progress as an answer, for example "French"."""
    step = interpreter.get_current_step(turn)
    if (
        command != turn.conversation.command
        or not isinstance(step, AskStep)
        or step.parse_text is None
    ):
        return False
    return interpreter.apply_answer(turn, step, step.parse_text(turn, text))


def _handle_answer(turn: Turn, text: str, *, is_late: bool) -> bool:
    """Treat the text as an option or an answer; return False if no open question takes free text.

    If the open question does not understand the text, reply so and return True.
    """
    offer, number = turn.conversation.offer, parse_list_number(text)
    if offer is not None and text.casefold() == offer.more.title.casefold():
        interpreter.handle_option(turn, OptionChosen(id=offer.more.id))
        return True
    if offer is not None and number is not None and 1 <= number <= len(offer.options):
        interpreter.handle_option(
            turn, OptionChosen(id=offer.options[number - 1].id, is_late=is_late)
        )
        return True
    step = interpreter.get_current_step(turn)
    if step is None and offer is not None and _is_bare_number(turn, text):
        turn.replies.append(offer)
        turn.prepend_to_last_reply("option_not_listed")
        return True
    if not isinstance(step, AskStep) or step.parse_text is None:
        return False
    if not interpreter.apply_answer(turn, step, step.parse_text(turn, text)):
        _reply_not_understood(turn, step)
    return True


def _is_bare_number(turn: Turn, text: str) -> bool:
    is_number = parse_list_number(text) is not None or text.isdecimal()
    return is_number and parse_payee(text, turn.person.phone) is None


def _reply_not_understood(turn: Turn, step: Step) -> None:
    interpreter.repeat_question(turn, step.not_understood_key, currency=turn.context.currency)


def _handle_intent(turn: Turn, intent: Intent, text: str) -> None:
    """Act on the guessed intent of a text that is not an answer to an open question."""
    if _is_bare_number(turn, text):
        intent = Intent()
    transfer = parse_transfer(text, turn.person.phone, turn.context.currency)
    step = interpreter.get_current_step(turn)
    names_payee = bool(transfer.phone or transfer.card_serial)
    if step is None and _is_bare_payee(turn, text):
        interpreter.begin_command(turn, "send", text)
    elif intent.command is not None and not (
        step and _must_ignore_guess(turn, intent.command, names_payee=names_payee)
    ):
        _run_command(turn, intent.command, text, is_late=True)
    elif step is not None:
        _reply_not_understood(turn, step)
    elif transfer.amount is not None and names_payee and not _is_doubtful(text):
        interpreter.begin_command(turn, "send", text)
    elif _can_pass_on(turn, text):
        _pass_on(turn, text)
    elif candidates := [command for command in intent.candidates if command in SCRIPTS][:3]:
        if len(candidates) == 1:
            turn.finish("did_you_mean.one", *candidates, yes=candidates[0])
        else:
            turn.finish("did_you_mean", *candidates)
    else:
        turn.finish("not_understood", "menu", "help")


def _is_doubtful(text: str) -> bool:
    return is_doubtful(normalize_text(text), is_question="?" in text)


def _is_bare_payee(turn: Turn, text: str) -> bool:
    """Return whether the text is only a payee.

    A payee is a phone number that starts with 0 or +, or a card serial. The minimum number of
    digits in a serial keeps ordinary words from matching.
    """
    if text.startswith(("0", "+")):
        return parse_phone(text, turn.person.phone) is not None
    transfer = parse_transfer(text, None, turn.context.currency)
    is_single_serial = len(text.split()) == 1 and transfer.card_serial is not None
    return is_single_serial and sum(char.isdigit() for char in text) >= _MIN_SERIAL_DIGITS


def _must_ignore_guess(turn: Turn, command: Command, *, names_payee: bool) -> bool:
    """Return whether to ignore a guessed command because a question is open.

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
    elif step is None:
        interpreter.repeat_question(turn, "nothing_pending")
    else:
        interpreter.repeat_question(turn, "late" if isinstance(step, ConfirmStep) else None)
