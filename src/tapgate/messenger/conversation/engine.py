"""Entry point of the conversation engine: processes one event without I/O, clock or randomness."""

from typing import assert_never

from tapgate.messenger.conversation import buttons, interpreter, text_input, texts
from tapgate.messenger.conversation.state import Conversation, EngineOutput
from tapgate.messenger.conversation.steps import PIN_PATTERN, AskStep, PinInput, PinStep
from tapgate.messenger.conversation.turn import Turn
from tapgate.messenger.model.events import (
    Event,
    FormClosed,
    FormSubmitted,
    GatewayUnreachable,
    ImageReceived,
    ImageRejected,
    NumberChanged,
    OptionChosen,
    RequestRejected,
    RequestSucceeded,
    TextMessage,
    UnsupportedMessage,
)
from tapgate.messenger.model.people import Person, SetTrusted, TurnContext
from tapgate.messenger.model.replies import TextReply
from tapgate.messenger.understanding.secret_detection import may_contain_pin

_RequestOutcome = RequestSucceeded | RequestRejected | GatewayUnreachable


def process_event(
    person: Person, conversation: Conversation, event: Event, setting: TurnContext
) -> EngineOutput:
    scene = Turn(person, conversation, setting)
    if not isinstance(event, _RequestOutcome):
        if conversation.lapsed and _is_pin_for_lapsed_conversation(event):
            scene.update(lapsed=False)
            scene.suggest_commands(scene.translate("lapsed.pin"), "history", "menu")
            return scene.to_output()
        _notify_if_lapsed(scene)
        if conversation.stage == "executing" and not isinstance(event, NumberChanged):
            # The previous turn ended before the outcome of its gateway request was processed.
            event = GatewayUnreachable(uncertain=True)
    _handle(scene, event)
    return scene.to_output()


def build_rate_limit_reply(person: Person, wait_seconds: int) -> TextReply:
    """Build the reply to a user who exceeds the message rate limit."""
    return TextReply(
        text=texts.translate(person.language or "en", "rate_limited", seconds=wait_seconds)
    )


def _handle(scene: Turn, event: Event) -> None:
    match event:
        case RequestSucceeded() | RequestRejected() | GatewayUnreachable():
            interpreter.handle(scene, event)
        case TextMessage():
            text_input.handle(scene, event)
        case OptionChosen():
            buttons.handle(scene, event)
        case FormSubmitted():
            _handle_form_submitted(scene, event)
        case FormClosed():
            _handle_form_closed(scene)
        case ImageReceived():
            _handle_image_received(scene, event)
        case ImageRejected():
            scene.add_reply("picture.rejected")
            interpreter.repeat_question(scene)
        case NumberChanged():
            _handle_number_changed(scene)
        case UnsupportedMessage():
            interpreter.reply_and_repeat_question(scene, "unsupported_message")
        case _:
            assert_never(event)


def _notify_if_lapsed(scene: Turn) -> None:
    if scene.conversation.lapsed:
        scene.update(lapsed=False)
        scene.add_reply("lapsed")


def _is_pin_for_lapsed_conversation(event: Event) -> bool:
    """Return whether the event carries a PIN.

    The lapsed conversation asked for it, so replying that no PIN was requested would be wrong.
    """
    if isinstance(event, TextMessage):
        return event.text is None or may_contain_pin(event.text)
    return isinstance(event, FormSubmitted)


def _handle_form_submitted(scene: Turn, event: FormSubmitted) -> None:
    piece = interpreter.get_current_step(scene)
    if not isinstance(piece, PinStep) or event.operation != scene.conversation.operation:
        scene.add_reply("form.expired")
        interpreter.repeat_question(scene)
        return
    scene.update(form_answered=True)
    pin = event.new_pin if piece.form == "new_pin" and event.new_pin else event.pin
    new_pin = event.new_pin if piece.form == "change_pin" else pin
    if (
        pin is None
        or new_pin is None
        or not (PIN_PATTERN.fullmatch(pin) and PIN_PATTERN.fullmatch(new_pin))
    ):
        scene.add_reply("not_understood.pin")
        interpreter.repeat_question(scene)
        return
    interpreter.submit_pin(scene, piece, PinInput(pin=pin, new_pin=new_pin))


def _handle_form_closed(scene: Turn) -> None:
    """Handle a closed form.

    The event follows `FormSubmitted`, whose outcome was already reported, or replaces it when the
    user closes the form without submitting.
    """
    answered = scene.conversation.form_answered
    scene.update(form_answered=False)
    if scene.conversation.is_awaiting_pin and not answered:
        scene.add_reply("form.closed")
        interpreter.repeat_question(scene)


def _handle_image_received(scene: Turn, event: ImageReceived) -> None:
    piece = interpreter.get_current_step(scene)
    if isinstance(piece, AskStep) and piece.parse_image is not None:
        interpreter.apply_answer(scene, piece, piece.parse_image(scene, event.image))
        return
    if piece is None:
        scene.add_reply("picture.choose_type")
        interpreter.begin_command(scene, "kyc")
        return
    if scene.conversation.command == "kyc" and isinstance(piece, AskStep):
        scene.ask(scene.translate("picture.choose_type"), piece.choices(scene))
        return
    scene.add_reply("picture.not_expected")
    interpreter.repeat_question(scene)


def _handle_number_changed(scene: Turn) -> None:
    """Reset identity and trust: the number may have a different holder now."""
    scene.update(
        subscriber=None, met=None, trusted=False, phone=None, offer=None, form_answered=False
    )
    scene.end_command()
    scene.effects.append(SetTrusted(trusted=False))
    scene.add_reply("number_changed")
