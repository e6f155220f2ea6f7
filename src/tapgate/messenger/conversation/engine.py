"""The conversation's entry: one event in, one step out. No I/O, no clock, no chance."""

import re
import unicodedata
from typing import Final, assert_never

import msgspec

from tapgate.messenger.conversation import interpreter, texts, words
from tapgate.messenger.conversation.flows import FLOWS
from tapgate.messenger.conversation.pieces import Ask, Confirm, Pin, Pins
from tapgate.messenger.conversation.scene import Scene
from tapgate.messenger.conversation.state import Conversation, Step
from tapgate.messenger.model.events import (
    Answered,
    Chose,
    Entered,
    Event,
    FormClosed,
    Meaning,
    NotUnderstood,
    NumberChanged,
    Pictured,
    PictureRefused,
    Refused,
    Said,
    Unreachable,
)
from tapgate.messenger.model.kinds import Command
from tapgate.messenger.model.people import KeepRecipient, Person, Setting, Trust
from tapgate.messenger.model.replies import Say
from tapgate.messenger.understanding import reading
from tapgate.messenger.understanding.secrets_in_text import may_hold_a_pin

#: How many options the channel shows before "More".
_PAGE: Final = 9
_PIN: Final = re.compile(r"[0-9]{4}")
_FIGURES: Final = re.compile(r"[0-9]+")

_Outcome = Answered | Refused | Unreachable


def step(person: Person, conversation: Conversation, event: Event, setting: Setting) -> Step:
    scene = Scene(person, conversation, setting)
    if not isinstance(event, _Outcome):
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
            _said(scene, event)
        case Chose():
            _chose(scene, event)
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
            scene.say("not_understood.kind")
            interpreter.ask_again(scene)
        case _:
            assert_never(event)


def _greet_the_returned(scene: Scene) -> None:
    if scene.conversation.lapsed:
        scene.change(lapsed=False)
        scene.say("lapsed")


# Words


def _said(scene: Scene, event: Said) -> None:
    if scene.person.language is None and event.meaning.language is not None:
        scene.speak(event.meaning.language)
    if event.text is None:
        scene.say("withheld")
        interpreter.ask_again(scene)
        return
    text = event.text.strip()
    exact = words.command(text)
    piece = interpreter.current(scene)
    if isinstance(piece, Pin):
        _said_for_pin(scene, piece, text, exact or _way_out(event.meaning), late=event.late)
    elif (piece.sounds_like_pin if isinstance(piece, Ask) else may_hold_a_pin)(text):
        scene.say("pin.unasked")
        interpreter.ask_again(scene)
    elif exact is not None and not _answers_its_own(scene, exact, text):
        _obey(scene, exact, text, late=event.late)
    elif exact is None and not _answered(scene, text, late=event.late):
        _guess(scene, event.meaning, text)


def _said_for_pin(
    scene: Scene, piece: Pin, text: str, command: Command | None, *, late: bool
) -> None:
    pins = _pins_in(text, piece)
    if command is not None:
        _obey(scene, command, text, late=late)
        return
    if pins is not None and scene.setting.pins == "text" and not late:
        interpreter.enter(scene, piece, pins)
        return
    if may_hold_a_pin(text) and scene.setting.pins != "text":
        scene.say("pin.not_as_text")
    elif late:
        scene.say("late")
    else:
        scene.say("unread.pin")
    interpreter.ask_again(scene)


def _way_out(meaning: Meaning) -> Command | None:
    """A guess may end something, never go on with it."""
    return meaning.command if meaning.command in ("no", "cancel") else None


def _pins_in(text: str, piece: Pin) -> Pins | None:
    """As many PINs as are asked for, and no other figures."""
    figures = _FIGURES.findall(unicodedata.normalize("NFKC", text))
    asked = 2 if piece.form == "change_pin" else 1
    if not may_hold_a_pin(text) or len(figures) != asked or not all(map(_PIN.fullmatch, figures)):
        return None
    return Pins(pin=figures[0], new_pin=figures[-1])


def _answers_its_own(scene: Scene, command: Command, text: str) -> bool:
    """ "French" is a command, and what the same command asks for."""
    piece = interpreter.current(scene)
    if command != scene.conversation.command or not isinstance(piece, Ask) or piece.read is None:
        return False
    return interpreter.take(scene, piece, piece.read(scene, text))


def _answered(scene: Scene, text: str, *, late: bool) -> bool:
    """Whether the text answers what was asked or offered last."""
    offer, number = scene.conversation.offer, reading.number(text)
    if offer is not None and text.casefold() == offer.more.title.casefold():
        _chose(scene, Chose(id=offer.more.id))
        return True
    if offer is not None and number is not None and 1 <= number <= len(offer.options):
        _chose(scene, Chose(id=offer.options[number - 1].id, late=late))
        return True
    piece = interpreter.current(scene)
    if not isinstance(piece, Ask) or piece.read is None:
        return False
    if not interpreter.take(scene, piece, piece.read(scene, text)):
        scene.say(piece.unread)
        interpreter.ask_again(scene)
    return True


def _guess(scene: Scene, meaning: Meaning, text: str) -> None:
    """What the words seem to ask for, where no answer in words is expected."""
    order = reading.order(text, scene.person.phone, scene.setting.currency)
    piece = interpreter.current(scene)
    if meaning.command is not None and not (meaning.command == "yes" and piece):
        _obey(scene, meaning.command, text, late=True)
    elif piece is not None:
        scene.say(piece.unread)
        interpreter.ask_again(scene)
    elif order.amount is not None and (order.phone or order.card_serial):
        interpreter.begin(scene, "send", text)
    elif maybe := [command for command in meaning.maybe if command in FLOWS][:3]:
        scene.suggest(scene.text("did_you_mean"), *maybe)
    else:
        scene.suggest(scene.text("not_understood"), "menu", "help")


def _obey(scene: Scene, command: Command, text: str, *, late: bool) -> None:
    match command:
        case "yes":
            _yes(scene, late=late)
        case "no" | "cancel":
            interpreter.cancel(scene)
        case _:
            interpreter.begin(scene, command, text)


def _yes(scene: Scene, *, late: bool) -> None:
    piece = interpreter.current(scene)
    if isinstance(piece, Confirm) and not late:
        interpreter.choose(scene, "yes")
        return
    if piece is None:
        scene.say("nothing_pending")
    elif isinstance(piece, Confirm):
        scene.say("late")
    interpreter.ask_again(scene)


# Taps


def _chose(scene: Scene, event: Chose) -> None:
    offer = scene.conversation.offer
    kind, _, command = event.id.partition(":")
    if kind == "cmd" and command in FLOWS:
        interpreter.begin(scene, msgspec.convert(command, Command))
    elif offer is not None and event.id == offer.more.id:
        start = offer.start + _PAGE
        following = msgspec.structs.replace(offer, start=start if start < len(offer.options) else 0)
        scene.change(offer=following)
        scene.replies.append(following)
    elif offer is None or event.id not in {option.id for option in offer.options}:
        scene.say("expired")
        interpreter.ask_again(scene)
    elif event.late and scene.conversation.stage == "confirm":
        scene.say("late")
        interpreter.ask_again(scene)
    elif scene.conversation.stage == "idle":
        _keep(scene)
    else:
        interpreter.choose(scene, event.id.rpartition("#")[0])


def _keep(scene: Scene) -> None:
    """The only thing that is offered with no command at work, apart from commands."""
    met = scene.conversation.met
    scene.change(met=None, offer=None)
    if met is None:
        scene.say("expired")
        interpreter.ask_again(scene)
        return
    scene.effects.append(KeepRecipient(recipient=met))
    scene.suggest(scene.text("send.kept", name=met.name), "send", "menu")


# Forms and pictures


def _entered(scene: Scene, event: Entered) -> None:
    piece = interpreter.current(scene)
    if not isinstance(piece, Pin) or event.operation != scene.conversation.operation:
        scene.say("form.expired")
        interpreter.ask_again(scene)
        return
    scene.change(form_answered=True)
    pin = event.new_pin if piece.form == "new_pin" and event.new_pin else event.pin
    new_pin = event.new_pin if piece.form == "change_pin" else pin
    if pin is None or new_pin is None or not (_PIN.fullmatch(pin) and _PIN.fullmatch(new_pin)):
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
    scene.say("picture.what" if scene.conversation.command == "kyc" else "picture.not_now")
    interpreter.ask_again(scene)


def _number_changed(scene: Scene) -> None:
    """Whoever holds the number now may be somebody else."""
    scene.change(
        subscriber=None, met=None, trusted=False, phone=None, offer=None, form_answered=False
    )
    scene.rest()
    scene.effects.append(Trust(trusted=False))
    scene.say("number_changed")
