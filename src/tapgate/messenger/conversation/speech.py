"""What is said in words: a PIN, a command, an answer, or something to guess at, in this order."""

import re
import unicodedata
from typing import Final

from tapgate.messenger.conversation import interpreter, taps, words
from tapgate.messenger.conversation.flows import FLOWS
from tapgate.messenger.conversation.pieces import PIN, Ask, Confirm, Pin, Pins
from tapgate.messenger.conversation.scene import Scene
from tapgate.messenger.model.events import Chose, Meaning, Said
from tapgate.messenger.model.kinds import Command
from tapgate.messenger.understanding import reading
from tapgate.messenger.understanding.secrets_in_text import may_hold_a_pin

_FIGURES: Final = re.compile(r"[0-9]+")


def hear(scene: Scene, event: Said) -> None:
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
    if not may_hold_a_pin(text) or len(figures) != asked or not all(map(PIN.fullmatch, figures)):
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
        taps.hear(scene, Chose(id=offer.more.id))
        return True
    if offer is not None and number is not None and 1 <= number <= len(offer.options):
        taps.hear(scene, Chose(id=offer.options[number - 1].id, late=late))
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
