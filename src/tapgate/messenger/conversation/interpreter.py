"""Walks through a command's script: puts what is open, takes answers, makes calls, hears of it."""

from collections.abc import Mapping
from typing import Any, Final

from tapgate.errors import Code
from tapgate.messenger.conversation import refusals
from tapgate.messenger.conversation.commands import SCRIPTS
from tapgate.messenger.conversation.pieces import Ask, Confirm, Fetch, Go, Piece, Pin, Pins, Taken
from tapgate.messenger.conversation.scene import Choice, Scene
from tapgate.messenger.model.calls import Call
from tapgate.messenger.model.events import Answered, Refused, Unreachable
from tapgate.messenger.model.kinds import Command
from tapgate.messenger.model.replies import AskPin

#: Refusals that say nothing about the request itself: it may be retried as it is.
_NO_VERDICT: Final[Mapping[str, Unreachable]] = {
    Code.SERVICE_UNAVAILABLE: Unreachable(uncertain=False),
    Code.RATE_LIMITED: Unreachable(uncertain=False),
    Code.INTERNAL_ERROR: Unreachable(uncertain=True),
}


def begin(scene: Scene, command: Command, said: str = "") -> None:
    """A command from its beginning. What was going on is cancelled, and that is said."""
    script = SCRIPTS[command]
    leave(scene)
    scene.change(met=None, suggested=None)
    if scene.setting.pins == "none" and script.needs_pin(scene):
        scene.suggest(scene.text("pin.nowhere"), "person", "menu")
        return
    scene.change(command=command, stage="collecting", piece=None)
    script.begin(scene, said)
    advance(scene)


def leave(scene: Scene) -> bool:
    """Cancels what is going on, if anything is."""
    conversation = scene.conversation
    if conversation.command is None:
        return False
    # A look-up that could not be made is nothing that was begun.
    if not isinstance(current(scene), Fetch):
        what = scene.text(f"title.{conversation.command}")
        scene.say(SCRIPTS[conversation.command].left(scene), what=what)
    scene.rest()
    scene.change(offer=None)
    return True


def current(scene: Scene) -> Piece | None:
    """The piece at work."""
    command = scene.conversation.command
    return None if command is None else SCRIPTS[command].piece(scene.conversation.piece)


def advance(scene: Scene) -> None:
    command = scene.conversation.command
    assert command is not None
    while (piece := SCRIPTS[command].first_open(scene)) is not None:
        given = piece.given(scene) if isinstance(piece, Ask) else None
        if given is None:
            put(scene, piece)
            return
        scene.know(**{piece.name: given})
    scene.rest()


def put(scene: Scene, piece: Piece) -> None:
    scene.change(piece=piece.name)
    match piece:
        case Fetch():
            _call(scene, piece, piece.call(scene))
        case Ask():
            scene.change(stage="collecting")
            scene.ask(piece.prompt(scene), piece.choices(scene))
        case Confirm():
            # What is confirmed gets its id now: it is kept long before a PIN comes in.
            scene.change(stage="confirm", operation=scene.setting.fresh, form_answered=False)
            choices = [Choice(name, scene.text(f"confirm.{name}")) for name in ("yes", "no")]
            scene.ask(piece.prompt(scene), choices)
        case Pin():
            _ask_pin(scene, piece)


def ask_again(scene: Scene) -> None:
    """Repeats the open question; without one, says what can be done."""
    match current(scene):
        case None:
            scene.rest()
            scene.suggest(scene.text("what_next"), "menu", "help")
        case Fetch():
            _ask_to_try_again(scene)
        case piece:
            put(scene, piece)


def repeat(scene: Scene, key: str) -> None:
    """Says something and repeats the open question, in one message where it fits."""
    ask_again(scene)
    scene.say_before_last(key)


def take(scene: Scene, piece: Piece, taken: Taken) -> bool:
    """Goes on with an answer; False when it was none."""
    match taken:
        case None:
            return False
        case "end":
            scene.rest()
        case Mapping():
            scene.know(**taken)
            advance(scene)
        case call:
            _call(scene, piece, call)
    return True


def choose(scene: Scene, value: str) -> None:
    """An option of the open question."""
    match current(scene):
        case Confirm() as piece if value == "yes":
            take(scene, piece, {piece.name: value})
        case Confirm():
            cancel(scene)
        case Ask() as piece:
            taken = {piece.name: value} if piece.chose is None else piece.chose(scene, value)
            if not take(scene, piece, taken):
                ask_again(scene)
        case Fetch() as piece:
            put(scene, piece)
        case _:
            ask_again(scene)


def cancel(scene: Scene) -> None:
    if not leave(scene):
        scene.say("nothing_pending")
    scene.suggest(scene.text("what_next"), "menu", "help")


def enter(scene: Scene, piece: Pin, pins: Pins) -> None:
    """The PIN that was asked for."""
    _call(scene, piece, piece.call(scene, pins))


def hear(scene: Scene, outcome: Answered | Refused | Unreachable) -> None:
    """What became of the call that was made."""
    piece = current(scene)
    if piece is None or scene.conversation.stage != "executing":
        scene.rest()
        scene.suggest(scene.text("error.general"), "menu", "person")
        return
    if isinstance(outcome, Refused) and not _is_limit(outcome):
        outcome = _NO_VERDICT.get(outcome.code) or outcome
    match outcome:
        case Answered(result=result):
            _follow(scene, piece, piece.told(scene, result))
        case Refused():
            _follow(scene, piece, _refused(scene, piece, outcome))
        case Unreachable(uncertain=uncertain):
            _unreachable(scene, piece, uncertain=uncertain)


def _is_limit(refused: Refused) -> bool:
    """Whether a limit of the operation was reached, as opposed to the caller's request rate."""
    return refused.code == Code.RATE_LIMITED and "limit" in refused.details


def _call(scene: Scene, piece: Piece, call: Call) -> None:
    scene.change(stage="executing", piece=piece.name, offer=None)
    scene.call = call


def _follow(scene: Scene, piece: Piece, go: Go) -> None:
    if go == "end":
        scene.rest()
        return
    if go == "on":
        scene.know(**{piece.name: scene.facts.get(piece.name, "done")})
        # What follows needs a confirmation, and an id, of its own.
        scene.change(operation=None, uncertain=False)
    advance(scene)


def _refused(scene: Scene, piece: Piece, refused: Refused) -> Go:
    if isinstance(piece, Pin) and refused.code == Code.INVALID_PIN:
        return _wrong_pin(scene, refused.details)
    go = piece.refused(scene, refused)
    if go is None:
        scene.suggest(refusals.sentence(scene, refused), "menu", "person")
        return "end"
    return go


def _wrong_pin(scene: Scene, details: Mapping[str, Any]) -> Go:
    left = details.get("attempts_remaining")
    if left == 0:
        _warn_if_uncertain(scene)
        scene.suggest(scene.text("pin.locked_now"), "menu", "person")
        return "end"
    if isinstance(left, int):
        scene.say("pin.wrong", left=left)
    else:
        scene.say("error.INVALID_PIN")
    return "back"


def _warn_if_uncertain(scene: Scene) -> None:
    """Before a payment is left of which nobody knows whether it took place."""
    if scene.conversation.uncertain:
        scene.say("send.left_uncertain")


def _unreachable(scene: Scene, piece: Piece, *, uncertain: bool) -> None:
    if isinstance(piece, Pin) and piece.moves_money and uncertain:
        scene.change(uncertain=True)
    if isinstance(piece, Fetch):
        _ask_to_try_again(scene)
        return
    uncertain = uncertain or scene.conversation.uncertain
    scene.say(piece.uncertain if uncertain else "unreachable")
    put(scene, piece)


def _ask_to_try_again(scene: Scene) -> None:
    scene.change(stage="collecting")
    again = Choice("again", scene.text("again"))
    scene.ask(scene.text("unreachable"), [again, scene.command("menu")])


def _ask_pin(scene: Scene, piece: Pin) -> None:
    if scene.setting.pins == "none":
        _warn_if_uncertain(scene)
        scene.suggest(scene.text("pin.nowhere"), "person", "menu")
        scene.rest()
        return
    if scene.conversation.operation is None:
        scene.change(operation=scene.setting.fresh, form_answered=False)
    scene.change(stage="await_pin")
    text = piece.prompt(scene)
    if scene.setting.pins == "text":
        scene.ask(f"{text}\n\n{scene.text(f'pin.text.{piece.form}')}")
        return
    assert scene.conversation.operation is not None
    scene.change(offer=None)
    scene.replies.append(
        AskPin(
            text=text,
            button=scene.text("pin.button"),
            form=piece.form,
            operation=scene.conversation.operation,
        )
    )
