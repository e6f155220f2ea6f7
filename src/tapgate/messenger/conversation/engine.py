"""Conversation engine entry point: processes one event without I/O, clock or randomness.

An event is read as a move, and the interpreter performs it.
"""

from typing import assert_never

from tapgate.messenger import texts
from tapgate.messenger.conversation import interpreter, text_reader
from tapgate.messenger.conversation.commands import kyc
from tapgate.messenger.conversation.moves import (
    AnswerImage,
    AnswerText,
    Begin,
    Move,
    Repeat,
    SubmitPin,
)
from tapgate.messenger.conversation.state import MAX_KEPT_IMAGES, Conversation, EngineOutput
from tapgate.messenger.conversation.steps import (
    CODE_PATTERN,
    PIN_PATTERN,
    AskStep,
    PinInput,
    PinStep,
    Step,
)
from tapgate.messenger.conversation.turn import Turn
from tapgate.messenger.model import (
    ContactsShared,
    Event,
    FormClosed,
    FormSubmitted,
    GatewayUnreachable,
    ImageReceived,
    ImageRejected,
    NumberChanged,
    OptionChosen,
    Person,
    PlaceShared,
    RequestOutcome,
    RequestRejected,
    RequestSucceeded,
    TextMessage,
    TextReply,
    TurnContext,
    UnsupportedMessage,
)
from tapgate.messenger.understanding.places import find_town, parse_address
from tapgate.messenger.understanding.secret_detection import may_contain_pin
from tapgate.messenger.understanding.transfers import parse_phone


def process_event(
    person: Person, conversation: Conversation, event: Event, context: TurnContext
) -> EngineOutput:
    turn = Turn(person, conversation, context)
    if not isinstance(event, RequestOutcome):
        if conversation.lapsed:
            turn.update(lapsed=False)
            if _is_pin_for_lapsed_conversation(event):
                turn.finish("lapsed.pin", "history", "menu")
                return turn.to_output()
            turn.add_reply("lapsed")
        if conversation.stage == "executing" and not isinstance(event, NumberChanged):
            # The previous turn was interrupted before it processed its gateway
            # response. The outcome is unknown, and the new event is not processed.
            event = GatewayUnreachable(uncertain=True)
    step = interpreter.get_current_step(conversation.command, conversation.step)
    interpreter.perform(turn, _read_event(turn, step, event))
    return turn.to_output()


def build_rate_limit_reply(person: Person, wait_seconds: int) -> TextReply:
    """Build the reply to a user who exceeds the message rate limit."""
    return TextReply(
        text=texts.translate(person.language or "en", "rate_limited", seconds=wait_seconds)
    )


def _is_pin_for_lapsed_conversation(event: Event) -> bool:
    """Return whether the event may contain a PIN that the lapsed conversation asked for.

    The usual reply to an unrequested PIN would then be false.
    """
    if isinstance(event, TextMessage):
        return event.text is None or may_contain_pin(event.text)
    return isinstance(event, FormSubmitted)


def _read_event(turn: Turn, step: Step | None, event: Event) -> Move | None:  # noqa: PLR0911 - one per event
    """Return the move that the event asks for, after recording what holds whatever the move."""
    match event:
        case RequestSucceeded() | RequestRejected() | GatewayUnreachable() | OptionChosen():
            return event
        case TextMessage():
            language = text_reader.select_language(turn.person.language, event)
            if language is not None and language != turn.person.language:
                turn.set_language(language)
            return text_reader.read_text(turn.person, turn.conversation, step, event, turn.context)
        case FormSubmitted():
            return _read_form(turn, step, event)
        case FormClosed():
            return _read_closed_form(turn)
        case ImageReceived():
            return _read_image(turn, step, event)
        case ImageRejected():
            return Repeat("picture.rejected")
        case ContactsShared():
            return _read_contacts(turn, step, event)
        case PlaceShared():
            return _read_place(turn, step, event)
        case NumberChanged():
            _forget_owner(turn)
            return None
        case UnsupportedMessage():
            return Repeat("unsupported_message", joined=True)
        case _:
            assert_never(event)


def _read_form(turn: Turn, step: Step | None, event: FormSubmitted) -> Move:
    if not isinstance(step, PinStep) or event.operation != turn.conversation.operation:
        return Repeat("form.expired")
    turn.update(form_answered=True)
    has_new_pin_only = step.form in ("new_pin", "reset_pin")
    pin = event.new_pin if has_new_pin_only and event.new_pin else event.pin
    new_pin = event.new_pin if step.form == "change_pin" else pin
    if (
        pin is None
        or new_pin is None
        or not (PIN_PATTERN.fullmatch(pin) and PIN_PATTERN.fullmatch(new_pin))
    ):
        return Repeat("not_understood.pin")
    if step.form == "reset_pin" and not (event.code and CODE_PATTERN.fullmatch(event.code)):
        return Repeat("not_understood.code")
    return SubmitPin(PinInput(pin=pin, new_pin=new_pin, code=event.code))


def _read_closed_form(turn: Turn) -> Move | None:
    """Read a closed form.

    After `FormSubmitted`, no reply is needed: the outcome was already reported. Otherwise, the user
    has closed the form without submitting a PIN.
    """
    was_answered = turn.conversation.form_answered
    turn.update(form_answered=False)
    is_missed = turn.conversation.is_awaiting_pin and not was_answered
    return Repeat("form.closed") if is_missed else None


def _read_image(turn: Turn, step: Step | None, event: ImageReceived) -> Move:
    if isinstance(step, AskStep) and step.parse_image is not None:
        return AnswerImage(event.image)
    is_full = event.kept_count >= MAX_KEPT_IMAGES
    if is_full:
        turn.add_reply("picture.too_many")
    else:
        turn.kept_image = event.image
    if step is None:
        return Begin("kyc")
    if turn.conversation.command == "kyc":
        kyc.count_kept_image(turn, event.kept_count if is_full else event.kept_count + 1)
        return Repeat()
    turn.update(has_kept_images=True)
    return Repeat(None if is_full else "picture.kept")


def _read_contacts(turn: Turn, step: Step | None, event: ContactsShared) -> Move:
    """Take a contact as the person to send money to, if it has one phone number."""
    phones = {
        number
        for contact in event.contacts
        for phone in contact.phones
        if (number := parse_phone(phone, turn.person.phone)) is not None
    }
    asks = isinstance(step, AskStep) and step.asks_for == "person"
    if not phones or not (asks or step is None):
        return Repeat("unsupported_message", joined=True)
    if len(phones) > 1:
        turn.add_reply("shared.several_phones", phones=", ".join(sorted(phones)))
        return Repeat() if asks else Begin("send")
    (phone,) = phones
    return AnswerText(phone, otherwise=Repeat()) if asks else Begin("send", phone)


def _read_place(turn: Turn, step: Step | None, event: PlaceShared) -> Move:
    """Take a shared place as the town to look for agents in."""
    town = find_town(event.latitude, event.longitude) or parse_address(event.address or "")
    asks = isinstance(step, AskStep) and step.asks_for == "place"
    if not (asks or step is None):
        return Repeat("unsupported_message", joined=True)
    if town is None:
        return Repeat("not_understood.place") if asks else Begin("nearest_agent")
    return AnswerText(town, otherwise=Repeat()) if asks else Begin("nearest_agent", f"in {town}")


def _forget_owner(turn: Turn) -> None:
    """Discard identity, trust and the command in progress: the number may have a new holder."""
    turn.update(
        subscriber=None,
        agent=None,
        met=None,
        trusted=False,
        phone=None,
        offer=None,
        form_answered=False,
        has_kept_images=False,
    )
    turn.end_command()
    turn.update_person(trusted=False, support=None, role=None)
    turn.add_reply("number_changed")
