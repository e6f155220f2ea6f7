"""The conversation's entry: one event in, one step out. No I/O, no clock, no chance."""

from typing import assert_never

from tapgate.messenger.conversation import interpreter, speech, taps, texts
from tapgate.messenger.conversation.pieces import PIN, Ask, Pin, Pins
from tapgate.messenger.conversation.scene import Scene
from tapgate.messenger.conversation.state import Conversation, Step
from tapgate.messenger.model.events import (
    Answered,
    Chose,
    Entered,
    Event,
    FormClosed,
    NotUnderstood,
    NumberChanged,
    Pictured,
    PictureRefused,
    Refused,
    Said,
    Unreachable,
)
from tapgate.messenger.model.people import Person, Setting, Trust
from tapgate.messenger.model.replies import Say
from tapgate.messenger.understanding.secrets_in_text import may_hold_a_pin

_Outcome = Answered | Refused | Unreachable


def step(person: Person, conversation: Conversation, event: Event, setting: Setting) -> Step:
    scene = Scene(person, conversation, setting)
    if not isinstance(event, _Outcome):
        if conversation.lapsed and _is_for_what_lapsed(event):
            scene.change(lapsed=False)
            scene.suggest(scene.text("lapsed.pin"), "history", "menu")
            return scene.step()
        _greet_the_returned(scene)
        if conversation.stage == "executing" and not isinstance(event, NumberChanged):
            # What became of the call was never heard.
            event = Unreachable(uncertain=True)
    _hear(scene, event)
    return scene.step()


def slow_down(person: Person, wait_seconds: int) -> Say:
    """For somebody who writes more than is read."""
    return Say(text=texts.text(person.language or "en", "slow_down", seconds=wait_seconds))


def _hear(scene: Scene, event: Event) -> None:
    match event:
        case Answered() | Refused() | Unreachable():
            interpreter.hear(scene, event)
        case Said():
            speech.hear(scene, event)
        case Chose():
            taps.hear(scene, event)
        case Entered():
            _entered(scene, event)
        case FormClosed():
            _form_closed(scene)
        case Pictured():
            _pictured(scene, event)
        case PictureRefused():
            scene.say("picture.refused")
            interpreter.ask_again(scene)
        case NumberChanged():
            _number_changed(scene)
        case NotUnderstood():
            interpreter.repeat(scene, "not_understood.kind")
        case _:
            assert_never(event)


def _greet_the_returned(scene: Scene) -> None:
    if scene.conversation.lapsed:
        scene.change(lapsed=False)
        scene.say("lapsed")


def _is_for_what_lapsed(event: Event) -> bool:
    """A PIN: it was asked for, so it would be wrong to say that it was not."""
    if isinstance(event, Said):
        return event.text is None or may_hold_a_pin(event.text)
    return isinstance(event, Entered)


def _entered(scene: Scene, event: Entered) -> None:
    piece = interpreter.current(scene)
    if not isinstance(piece, Pin) or event.operation != scene.conversation.operation:
        scene.say("form.expired")
        interpreter.ask_again(scene)
        return
    scene.change(form_answered=True)
    pin = event.new_pin if piece.form == "new_pin" and event.new_pin else event.pin
    new_pin = event.new_pin if piece.form == "change_pin" else pin
    if pin is None or new_pin is None or not (PIN.fullmatch(pin) and PIN.fullmatch(new_pin)):
        scene.say("unread.pin")
        interpreter.ask_again(scene)
        return
    interpreter.enter(scene, piece, Pins(pin=pin, new_pin=new_pin))


def _form_closed(scene: Scene) -> None:
    """Comes after `Entered`, when what came of it was told; or instead of it."""
    answered = scene.conversation.form_answered
    scene.change(form_answered=False)
    if scene.conversation.awaits_pin and not answered:
        scene.say("form.closed")
        interpreter.ask_again(scene)


def _pictured(scene: Scene, event: Pictured) -> None:
    piece = interpreter.current(scene)
    if isinstance(piece, Ask) and piece.seen is not None:
        interpreter.take(scene, piece, piece.seen(scene, event.picture))
        return
    if piece is None:
        scene.say("picture.what")
        interpreter.begin(scene, "kyc")
        return
    if scene.conversation.command == "kyc" and isinstance(piece, Ask):
        scene.ask(scene.text("picture.what"), piece.choices(scene))
        return
    scene.say("picture.not_now")
    interpreter.ask_again(scene)


def _number_changed(scene: Scene) -> None:
    """Whoever holds the number now may be somebody else."""
    scene.change(
        subscriber=None, met=None, trusted=False, phone=None, offer=None, form_answered=False
    )
    scene.rest()
    scene.effects.append(Trust(trusted=False))
    scene.say("number_changed")
