"""Reading of text messages as a PIN, small talk, option, command, answer or intent.

Reading returns a move and changes nothing.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from tapgate.messenger.conversation import option_matching
from tapgate.messenger.conversation.commands import SCRIPTS, support
from tapgate.messenger.conversation.moves import (
    AnswerText,
    Begin,
    Cancel,
    Confirm,
    Correct,
    ListOptions,
    Move,
    PassOn,
    Repeat,
    Say,
    SubmitPin,
    Suggest,
)
from tapgate.messenger.conversation.state import Conversation
from tapgate.messenger.conversation.steps import (
    CODE_PATTERN,
    PIN_PATTERN,
    AskStep,
    ConfirmStep,
    PinInput,
    PinStep,
    Step,
)
from tapgate.messenger.model import (
    Command,
    Intent,
    Language,
    OptionChosen,
    Person,
    TextMessage,
    TurnContext,
)
from tapgate.messenger.understanding import resolver
from tapgate.messenger.understanding.languages import detect_language
from tapgate.messenger.understanding.names import parse_list_number
from tapgate.messenger.understanding.normalization import normalize_text
from tapgate.messenger.understanding.safeguards import is_doubtful
from tapgate.messenger.understanding.secret_detection import (
    find_tap_url,
    has_code,
    may_contain_code,
    may_contain_pin,
)
from tapgate.messenger.understanding.transfers import parse_payee, parse_phone, parse_transfer
from tapgate.messenger.understanding.wishes import split_wishes
from tapgate.messenger.understanding.word_patterns import SmallTalk, classify_small_talk

_DIGITS_PATTERN: Final = re.compile(r"[0-9]+")
_MIN_SERIAL_DIGITS: Final = 4
#: Emoji that people answer with, and the words for them.
_EMOJI_ANSWERS: Final = {
    **dict.fromkeys(("👍", "👍👍", "👌", "✅", "🆗", "☑"), "ok"),
    **dict.fromkeys(("👎", "❌", "🚫"), "no"),
    **dict.fromkeys(("🙏", "❤", "🙏🙏"), "thanks"),
}
#: Variation selector and skin tones.
_EMOJI_MODIFIERS: Final = "\ufe0f🏻🏼🏽🏾🏿"
#: Commands whose keywords never name an option.
_RESERVED_COMMANDS: Final = frozenset({"menu", "help", "yes", "no", "cancel"})
#: No command, or one whose keywords name the recipient inside a transfer: "wrong number".
_CORRECTING_COMMANDS: Final = (None, "wrong_recipient", "change_number")
#: Small talk that is passed on to support staff while a support request is open.
_SUPPORT_SMALL_TALK: Final = frozenset({"thanks", "farewell", "take_back"})


#: What a customer's command means in an agent's menu.
_AGENT_MEANINGS: Final[Mapping[Command, Command]] = {
    "add_money": "cash_in",
    "balance": "float",
    "withdraw": "cash_out",
}
#: Commands whose keywords are small talk for customers.
_AGENT_WORDS: Final[frozenset[Command]] = frozenset({"commission"})


class _Input(NamedTuple):
    """A text and the situation in which it arrived."""

    text: str
    intent: Intent
    is_late: bool
    #: The command whose keyword the text is.
    command: Command | None
    small_talk: SmallTalk | None
    step: Step | None
    conversation: Conversation
    person: Person
    context: TurnContext

    @property
    def accepts_text(self) -> bool:
        """Whether the open question accepts free text."""
        return isinstance(self.step, AskStep) and self.step.parse_text is not None


def select_language(language: Language | None, event: TextMessage) -> Language | None:
    """Return the language: from the first recognized words, and later from a clear sentence."""
    language = language or event.intent.language
    detected = detect_language(event.text or "", is_sentence=True)
    return language if detected in (None, language or "en") else detected


def read_text(
    person: Person,
    conversation: Conversation,
    step: Step | None,
    event: TextMessage,
    context: TurnContext,
) -> Move:
    if event.text is None:
        return Repeat("withheld")
    text = _EMOJI_ANSWERS.get(event.text.strip().rstrip(_EMOJI_MODIFIERS), event.text.strip())
    meanings = _AGENT_MEANINGS if person.role == "agent" else {}
    command, intent = resolver.match_command(text), event.intent
    if intent.command is not None and intent.command in meanings:
        intent = msgspec.structs.replace(intent, command=meanings[intent.command])
    return _read(
        _Input(
            text=text,
            intent=intent,
            is_late=event.is_late,
            command=None if command is None else meanings.get(command, command),
            # For an agent, "commission" is the agent's commission, not the fees.
            small_talk=None if command in _AGENT_WORDS and meanings else classify_small_talk(text),
            step=step,
            conversation=conversation,
            person=person,
            context=context,
        )
    )


def _read(given: _Input) -> Move:
    text, step = given.text, given.step
    if find_tap_url(text) is not None:
        return _read_tap_link(given)
    if isinstance(step, PinStep):
        return _read_small_talk(given) or _read_at_pin_step(given, step)
    if step is None and has_code(text):
        return Begin("reset_pin", text)
    if (step.looks_like_pin if isinstance(step, AskStep) else may_contain_pin)(text):
        return Repeat("pin.unsolicited")
    if _continues_support_request(given):
        return PassOn(text)
    takes_any_text = isinstance(step, AskStep) and step.takes_any_text
    move = (
        _read_two_wishes(given)
        or (None if takes_any_text else _read_small_talk(given))
        or _read_option_name(given)
        or _read_keyword(given)
        or _read_answer(given)
        or _read_intent(given)
    )
    return _read_correction(given, otherwise=move)


def _read_two_wishes(given: _Input) -> Move | None:
    if given.step is not None:
        return None
    wishes = split_wishes(given.text, given.person.language)
    if wishes is None:
        return None
    first, second = wishes
    return Begin(first.command, first.text, later=Begin(second.command, second.text))


def _read_correction(given: _Input, *, otherwise: Move) -> Move:
    """Read a text that corrects an earlier answer of the command in progress.

    Other commands named by keyword have precedence. A transfer that may have been executed cannot
    be corrected.
    """
    command = given.conversation.command
    can_correct = (
        command is not None
        and SCRIPTS[command].correct is not None
        and given.command in _CORRECTING_COMMANDS
        and given.step is not None
        and not given.conversation.uncertain
    )
    return Correct(given.text, otherwise) if can_correct else otherwise


def _read_tap_link(given: _Input) -> Move:
    """Take a card link as the answer to a question about a card, or link the card."""
    begin = Begin("link", given.text)
    is_answer = given.conversation.command == "link" and given.accepts_text
    return AnswerText(given.text, otherwise=begin) if is_answer else begin


def _continues_support_request(given: _Input) -> bool:
    """Return whether a text that the chat usually answers itself is for support staff."""
    if not _can_pass_on(given) or given.conversation.suggested is not None:
        return False
    return given.command in ("yes", "no") or given.small_talk in _SUPPORT_SMALL_TALK


def _can_pass_on(given: _Input) -> bool:
    """Return whether the text, if it is not a command, can be passed on to support staff."""
    return (
        given.person.support is not None
        and given.person.phone is not None
        and given.step is None
        and support.can_pass_on(given.text)
    )


def _read_small_talk(given: _Input) -> Move | None:  # noqa: PLR0911 - one per kind
    """Return the reply to small talk, or None if the text is not small talk in this situation."""
    has_question = given.step is not None
    # A text is more likely an answer than an interruption if the open question accepts text.
    can_interrupt = not given.accepts_text
    match given.small_talk:
        case "greeting" if has_question:
            return Repeat("greeting_in_progress", joined=True)
        case "thanks":
            return Repeat("thanks", joined=True) if has_question else Say("thanks")
        case "fees" if has_question and given.conversation.command != "fees":
            return Repeat("fees.short", joined=True)
        case "fees":
            return Begin("fees", given.text)
        case "farewell" if not has_question and not (
            given.command == "yes" and given.conversation.suggested is not None
        ):
            return Say("goodbye", declines_suggestion=True)
        case "forgotten_pin" if can_interrupt:
            return Begin("reset_pin", given.text)
        case "take_back" if not has_question:
            return Begin("wrong_recipient")
        case "lost_phone" if can_interrupt:
            return Begin("person", given.text)
    return None


def _read_at_pin_step(given: _Input, step: PinStep) -> Move:
    text, is_late, mode = given.text, given.is_late, given.context.pin_entry_mode
    command = given.command or _infer_command_at_pin_step(given.intent, text)
    if command is not None:
        return _read_correction(given, otherwise=_read_command(given, command, is_late=is_late))
    pins = _parse_pins(text, step)
    if pins is not None and mode == "text" and not is_late:
        return SubmitPin(pins)
    if may_contain_pin(text) and mode != "text":
        return Repeat("pin.not_as_text")
    if is_late:
        return Repeat("late")
    if step.form == "reset_pin" and mode == "form" and may_contain_code(text):
        return Repeat("reset_pin.use_form")
    needs_both = step.form == "change_pin" and PIN_PATTERN.fullmatch(text)
    move = Repeat("not_understood.both_pins" if needs_both else step.not_understood_key)
    return move if may_contain_pin(text) else _read_correction(given, otherwise=move)


def _infer_command_at_pin_step(intent: Intent, text: str) -> Command | None:
    """Return the guessed command, or None if acting on the guess would be unsafe.

    A guess may end the command in progress but never continue it or send money. A text with digits
    may be a PIN and is never treated as a command.
    """
    if intent.command in ("send", "yes") or may_contain_pin(text) or _DIGITS_PATTERN.search(text):
        return None
    return intent.command


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


def _read_option_name(given: _Input) -> Move | None:
    """Choose the offered option that the text names."""
    offer = given.conversation.offer
    if offer is None or given.command in _RESERVED_COMMANDS or isinstance(given.step, ConfirmStep):
        return None
    option = option_matching.match_option(offer, given.text)
    return None if option is None else OptionChosen(id=option.id, is_late=given.is_late)


def _read_keyword(given: _Input) -> Move | None:
    """Run the command whose keyword the text is.

    A keyword for the command in progress may be an answer, for example "French".
    """
    if given.command is None:
        return None
    move = _read_command(given, given.command, is_late=given.is_late)
    is_answer = given.command == given.conversation.command and given.accepts_text
    return AnswerText(given.text, otherwise=move) if is_answer else move


def _read_answer(given: _Input) -> Move | None:
    """Read the text as an option or an answer; return None if no open question takes free text."""
    text, offer = given.text, given.conversation.offer
    if offer is not None:
        number = parse_list_number(text)
        if text.casefold() == offer.more.title.casefold():
            return OptionChosen(id=offer.more.id)
        if number is not None and 1 <= number <= len(offer.options):
            return OptionChosen(id=offer.options[number - 1].id, is_late=given.is_late)
        if given.step is None and _is_bare_number(given):
            return ListOptions()
    if given.step is None or not given.accepts_text:
        return None
    return AnswerText(text, otherwise=Repeat(given.step.not_understood_key))


def _is_bare_number(given: _Input) -> bool:
    is_number = parse_list_number(given.text) is not None or given.text.isdecimal()
    return is_number and parse_payee(given.text, given.person.phone) is None


def _read_intent(given: _Input) -> Move:
    """Act on the guessed intent: the text does not answer an open question."""
    text, step = given.text, given.step
    intent = Intent() if _is_bare_number(given) else given.intent
    transfer = parse_transfer(text, given.person.phone, given.context.currency)
    names_payee = bool(transfer.phone or transfer.card_serial)
    if step is None and _is_bare_payee(given):
        return Begin("send", text)
    if intent.command is not None and not (
        step and _must_ignore_guess(given, intent.command, names_payee=names_payee)
    ):
        return _read_command(given, intent.command, is_late=True)
    if step is not None:
        return Repeat(step.not_understood_key)
    is_transfer = transfer.amount is not None and names_payee
    if is_transfer and not is_doubtful(normalize_text(text), is_question="?" in text):
        return Begin("send", text)
    return PassOn(text) if _can_pass_on(given) else _suggest(intent.candidates)


def _suggest(candidates: tuple[Command, ...]) -> Move:
    commands = tuple(command for command in candidates if command in SCRIPTS)[:3]
    if len(commands) == 1:
        return Suggest("did_you_mean.one", commands, yes=commands[0])
    if commands:
        return Suggest("did_you_mean", commands)
    return Suggest("not_understood", ("menu", "help"))


def _is_bare_payee(given: _Input) -> bool:
    """Return whether the text is only a payee.

    A payee is a phone number that starts with 0 or +, or a card serial. The minimum number of
    digits in a serial keeps ordinary words from matching.
    """
    text = given.text
    if text.startswith(("0", "+")):
        return parse_phone(text, given.person.phone) is not None
    transfer = parse_transfer(text, None, given.context.currency)
    is_single_serial = len(text.split()) == 1 and transfer.card_serial is not None
    return is_single_serial and sum(char.isdigit() for char in text) >= _MIN_SERIAL_DIGITS


def _must_ignore_guess(given: _Input, command: Command, *, names_payee: bool) -> bool:
    """Return whether to ignore a guessed command because a question is open.

    A guess never counts as yes, and restarts the command in progress only if the text names a
    payee.
    """
    return command == "yes" or (command == given.conversation.command and not names_payee)


def _read_command(given: _Input, command: Command, *, is_late: bool) -> Move:
    match command:
        case "yes":
            return _read_yes(given, is_late=is_late)
        case "no" | "cancel":
            return Cancel()
        case _:
            return Begin(command, given.text)


def _read_yes(given: _Input, *, is_late: bool) -> Move:
    if isinstance(given.step, ConfirmStep):
        return Repeat("late") if is_late else Confirm()
    if given.step is not None:
        return Repeat()
    suggested = given.conversation.suggested
    return Repeat("nothing_pending") if suggested is None or is_late else Begin(suggested)
