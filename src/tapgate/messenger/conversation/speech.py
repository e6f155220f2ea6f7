"""What is said in words: a PIN, a command, an answer, or something to guess at, in this order."""

import re
import unicodedata
from typing import Final

from tapgate.messenger.conversation import interpreter, labels, remarks, taps, words
from tapgate.messenger.conversation.commands import SCRIPTS
from tapgate.messenger.conversation.pieces import PIN, Ask, Confirm, Piece, Pin, Pins
from tapgate.messenger.conversation.scene import Scene
from tapgate.messenger.model.events import Chose, Meaning, Said
from tapgate.messenger.model.kinds import Command
from tapgate.messenger.understanding import reading
from tapgate.messenger.understanding.secrets_in_text import may_hold_a_pin

_FIGURES: Final = re.compile(r"[0-9]+")
_FEWEST_DIGITS: Final = 4
#: What these say is never the name of an option.
_ALWAYS: Final = frozenset({"menu", "help", "yes", "no", "cancel"})


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
        if not remarks.hear(scene, text):
            command = exact or _instead_of_pin(event.meaning, text)
            _said_for_pin(scene, piece, text, command, late=event.late)
    elif (piece.sounds_like_pin if isinstance(piece, Ask) else may_hold_a_pin)(text):
        scene.say("pin.unasked")
        interpreter.ask_again(scene)
    elif remarks.hear(scene, text) or _picked(scene, exact, text, late=event.late):
        return
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
    elif piece.form == "change_pin" and PIN.fullmatch(text):
        scene.say("unread.both_pins")
    else:
        scene.say("unread.pin")
    interpreter.ask_again(scene)


def _instead_of_pin(meaning: Meaning, text: str) -> Command | None:
    """A guess may end something, never go on with it, and never where a PIN may be meant."""
    if meaning.command in ("send", "yes") or may_hold_a_pin(text) or _FIGURES.search(text):
        return None
    return meaning.command


def _picked(scene: Scene, exact: Command | None, text: str, *, late: bool) -> bool:
    """Whether the text says one of the options that are offered."""
    offer = scene.conversation.offer
    if offer is None or exact in _ALWAYS or isinstance(interpreter.current(scene), Confirm):
        return False
    option = labels.picked(offer, text)
    if option is None:
        return False
    taps.hear(scene, Chose(id=option.id, late=late))
    return True


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
    if piece is None and offer is not None and _is_no_more_than_a_number(scene, text):
        scene.replies.append(offer)
        scene.say_before_last("not_on_the_list")
        return True
    if not isinstance(piece, Ask) or piece.read is None:
        return False
    if not interpreter.take(scene, piece, piece.read(scene, text)):
        _unread(scene, piece)
    return True


def _is_no_more_than_a_number(scene: Scene, text: str) -> bool:
    is_number = reading.number(text) is not None or text.isdecimal()
    return is_number and reading.recipient(text, scene.person.phone) is None


def _unread(scene: Scene, piece: Piece) -> None:
    scene.say(piece.unread, currency=scene.setting.currency)
    interpreter.ask_again(scene)


def _guess(scene: Scene, meaning: Meaning, text: str) -> None:
    """What the words seem to ask for, where no answer in words is expected."""
    if _is_no_more_than_a_number(scene, text):
        meaning = Meaning()
    order = reading.order(text, scene.person.phone, scene.setting.currency)
    piece = interpreter.current(scene)
    names_payee = bool(order.phone or order.card_serial)
    if piece is None and _is_payee_alone(scene, text):
        interpreter.begin(scene, "send", text)
    elif meaning.command is not None and not (
        piece and _goes_on(scene, meaning.command, is_order=names_payee)
    ):
        _obey(scene, meaning.command, text, late=True)
    elif piece is not None:
        _unread(scene, piece)
    elif order.amount is not None and names_payee:
        interpreter.begin(scene, "send", text)
    elif maybe := [command for command in meaning.maybe if command in SCRIPTS][:3]:
        yes = maybe[0] if len(maybe) == 1 else None
        scene.suggest(scene.text("did_you_mean"), *maybe, yes=yes)
    else:
        scene.suggest(scene.text("not_understood"), "menu", "help")


def _is_payee_alone(scene: Scene, text: str) -> bool:
    """A phone number that begins as one, or a serial with so many digits that it is no word."""
    if text.startswith(("0", "+")):
        return reading.phone(text, scene.person.phone) is not None
    order = reading.order(text, None, scene.setting.currency)
    is_alone = len(text.split()) == 1 and order.card_serial is not None
    return is_alone and sum(sign.isdigit() for sign in text) >= _FEWEST_DIGITS


def _goes_on(scene: Scene, command: Command, *, is_order: bool) -> bool:
    """Whether a guess says no more than what is at work already: that is not begun again. A guess
    is no yes, either."""
    return command == "yes" or (command == scene.conversation.command and not is_order)


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
    suggested = scene.conversation.suggested
    if piece is None and suggested is not None and not late:
        interpreter.begin(scene, suggested)
        return
    if piece is None:
        scene.say("nothing_pending")
    elif isinstance(piece, Confirm):
        scene.say("late")
    interpreter.ask_again(scene)
