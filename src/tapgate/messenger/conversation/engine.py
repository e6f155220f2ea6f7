"""Entry point of the conversation engine: processes one event without I/O, clock or randomness."""

from typing import assert_never

from tapgate.messenger import texts
from tapgate.messenger.conversation import interpreter, text_input
from tapgate.messenger.conversation.commands import kyc
from tapgate.messenger.conversation.state import MAX_KEPT_IMAGES, Conversation, EngineOutput
from tapgate.messenger.conversation.steps import (
    CODE_PATTERN,
    PIN_PATTERN,
    AskStep,
    PinInput,
    PinStep,
)
from tapgate.messenger.conversation.turn import Turn
from tapgate.messenger.model import (
    Event,
    FormClosed,
    FormSubmitted,
    GatewayUnreachable,
    ImageReceived,
    ImageRejected,
    NumberChanged,
    OptionChosen,
    Person,
    RequestOutcome,
    RequestRejected,
    RequestSucceeded,
    TextMessage,
    TextReply,
    TurnContext,
    UnsupportedMessage,
)
from tapgate.messenger.understanding.secret_detection import may_contain_pin


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
            # The previous turn was interrupted before it processed the outcome of its gateway
            # request. The outcome is unknown, and the new event is not processed.
            event = GatewayUnreachable(uncertain=True)
    _handle(turn, event)
    return turn.to_output()


def build_rate_limit_reply(person: Person, wait_seconds: int) -> TextReply:
    """Build the reply to a user who exceeds the message rate limit."""
    return TextReply(
        text=texts.translate(person.language or "en", "rate_limited", seconds=wait_seconds)
    )


def _handle(turn: Turn, event: Event) -> None:
    match event:
        case RequestSucceeded() | RequestRejected() | GatewayUnreachable():
            interpreter.handle_outcome(turn, event)
        case TextMessage():
            text_input.handle(turn, event)
        case OptionChosen():
            interpreter.handle_option(turn, event)
        case FormSubmitted():
            _handle_form_submitted(turn, event)
        case FormClosed():
            _handle_form_closed(turn)
        case ImageReceived():
            _handle_image_received(turn, event)
        case ImageRejected():
            interpreter.repeat_question(turn, "picture.rejected")
        case NumberChanged():
            _handle_number_changed(turn)
        case UnsupportedMessage():
            interpreter.reply_and_repeat_question(turn, "unsupported_message")
        case _:
            assert_never(event)


def _is_pin_for_lapsed_conversation(event: Event) -> bool:
    """Return whether the event may contain a PIN that the lapsed conversation asked for.

    The usual reply to an unrequested PIN would then be false.
    """
    if isinstance(event, TextMessage):
        return event.text is None or may_contain_pin(event.text)
    return isinstance(event, FormSubmitted)


def _handle_form_submitted(turn: Turn, event: FormSubmitted) -> None:
    step = interpreter.get_current_step(turn)
    if not isinstance(step, PinStep) or event.operation != turn.conversation.operation:
        interpreter.repeat_question(turn, "form.expired")
        return
    turn.update(form_answered=True)
    has_new_pin_only = step.form in ("new_pin", "reset_pin")
    pin = event.new_pin if has_new_pin_only and event.new_pin else event.pin
    new_pin = event.new_pin if step.form == "change_pin" else pin
    if (
        pin is None
        or new_pin is None
        or not (PIN_PATTERN.fullmatch(pin) and PIN_PATTERN.fullmatch(new_pin))
    ):
        interpreter.repeat_question(turn, "not_understood.pin")
        return
    if step.form == "reset_pin" and not (event.code and CODE_PATTERN.fullmatch(event.code)):
        interpreter.repeat_question(turn, "not_understood.code")
        return
    interpreter.submit_pin(turn, step, PinInput(pin=pin, new_pin=new_pin, code=event.code))


def _handle_form_closed(turn: Turn) -> None:
    """Handle a closed form.

    After `FormSubmitted`, no reply is needed: the outcome was already reported. Otherwise, the user
    has closed the form without submitting a PIN.
    """
    was_answered = turn.conversation.form_answered
    turn.update(form_answered=False)
    if turn.conversation.is_awaiting_pin and not was_answered:
        interpreter.repeat_question(turn, "form.closed")


def _handle_image_received(turn: Turn, event: ImageReceived) -> None:
    step = interpreter.get_current_step(turn)
    if isinstance(step, AskStep) and step.parse_image is not None:
        interpreter.apply_answer(turn, step, step.parse_image(turn, event.image))
        return
    is_full = event.kept_count >= MAX_KEPT_IMAGES
    if is_full:
        turn.add_reply("picture.too_many")
    else:
        turn.kept_image = event.image
    if step is None:
        interpreter.begin_command(turn, "kyc")
    elif turn.conversation.command == "kyc":
        kyc.count_kept_image(turn, event.kept_count if is_full else event.kept_count + 1)
        interpreter.repeat_question(turn)
    else:
        turn.update(has_kept_images=True)
        interpreter.repeat_question(turn, None if is_full else "picture.kept")


def _handle_number_changed(turn: Turn) -> None:
    """Discard identity, trust and the command in progress: the number may have a new holder."""
    turn.update(
        subscriber=None,
        met=None,
        trusted=False,
        phone=None,
        offer=None,
        form_answered=False,
        has_kept_images=False,
    )
    turn.end_command()
    turn.update_person(trusted=False, support=None)
    turn.add_reply("number_changed")
