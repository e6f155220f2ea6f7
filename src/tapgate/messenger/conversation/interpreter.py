"""Interpreter for command scripts.

It asks the first open step, applies answers, sends gateway requests and handles their outcomes.
"""

from collections.abc import Mapping
from typing import Any, Final

from tapgate.errors import Code
from tapgate.messenger.conversation import error_messages
from tapgate.messenger.conversation.commands import SCRIPTS
from tapgate.messenger.conversation.steps import (
    AskStep,
    Claimed,
    ConfirmStep,
    Next,
    PinInput,
    PinStep,
    RequestStep,
    Step,
)
from tapgate.messenger.conversation.turn import Choice, Turn
from tapgate.messenger.model.common import Command
from tapgate.messenger.model.events import GatewayUnreachable, RequestRejected, RequestSucceeded
from tapgate.messenger.model.gateway_requests import GatewayRequest
from tapgate.messenger.model.replies import PinRequest

#: Error codes that say nothing about the request itself, which may be retried unchanged.
_UNREACHABLE_BY_CODE: Final[Mapping[str, GatewayUnreachable]] = {
    Code.SERVICE_UNAVAILABLE: GatewayUnreachable(uncertain=False),
    Code.RATE_LIMITED: GatewayUnreachable(uncertain=False),
    Code.INTERNAL_ERROR: GatewayUnreachable(uncertain=True),
}


def begin_command(scene: Turn, command: Command, said: str = "") -> None:
    """Start a command from its first step. Cancels a command in progress and notifies the user."""
    script = SCRIPTS[command]
    abandon_command(scene)
    scene.update(met=None, suggested=None)
    if scene.context.pin_entry_mode == "none" and script.needs_pin(scene):
        scene.suggest_commands(scene.translate("pin.unavailable"), "person", "menu")
        return
    scene.update(command=command, stage="collecting", piece=None)
    script.on_begin(scene, said)
    advance(scene)


def abandon_command(scene: Turn) -> bool:
    """Cancel the command in progress. Return False if there is none."""
    conversation = scene.conversation
    if conversation.command is None:
        return False
    # A request waiting for a retry needs no cancellation notice: nothing has started.
    if not isinstance(get_current_step(scene), RequestStep):
        what = scene.translate(f"title.{conversation.command}")
        scene.add_reply(SCRIPTS[conversation.command].get_cancel_key(scene), what=what)
    scene.end_command()
    scene.update(offer=None)
    return True


def get_current_step(scene: Turn) -> Step | None:
    """Return the current step of the command in progress, or None."""
    command = scene.conversation.command
    return None if command is None else SCRIPTS[command].get_step(scene.conversation.piece)


def advance(scene: Turn) -> None:
    command = scene.conversation.command
    assert command is not None
    while (piece := SCRIPTS[command].get_first_open_step(scene)) is not None:
        given = piece.infer_answer(scene) if isinstance(piece, AskStep) else None
        if given is None:
            start_step(scene, piece)
            return
        scene.set_facts(**{piece.name: given})
    scene.end_command()


def start_step(scene: Turn, piece: Step) -> None:
    scene.update(piece=piece.name)
    match piece:
        case RequestStep():
            _send_request(scene, piece, piece.build_request(scene))
        case AskStep():
            scene.update(stage="collecting")
            scene.ask(piece.prompt(scene), piece.choices(scene))
        case ConfirmStep():
            # Assign the operation id here, so it is persisted well before the PIN arrives.
            scene.update(
                stage="confirm", operation=scene.context.new_operation_id, form_answered=False
            )
            choices = [Choice(name, scene.translate(f"confirm.{name}")) for name in ("yes", "no")]
            scene.ask(piece.prompt(scene), choices)
        case PinStep():
            _ask_pin(scene, piece)


def repeat_question(scene: Turn) -> None:
    """Repeat the open question. Without one, suggest commands."""
    match get_current_step(scene):
        case None:
            scene.end_command()
            scene.suggest_commands(scene.translate("what_next"), "menu", "help")
        case RequestStep():
            _offer_retry(scene)
        case piece:
            start_step(scene, piece)


def reply_and_repeat_question(scene: Turn, key: str) -> None:
    """Reply and repeat the open question, in a single message if it fits."""
    repeat_question(scene)
    scene.prepend_to_last_reply(key)


def apply_answer(scene: Turn, piece: Step, taken: Claimed) -> bool:
    """Apply a parsed answer and continue. Return False if it was not understood."""
    match taken:
        case None:
            return False
        case "end":
            scene.end_command()
        case Mapping():
            scene.set_facts(**taken)
            advance(scene)
        case call:
            _send_request(scene, piece, call)
    return True


def choose_option(scene: Turn, value: str) -> None:
    """Apply the chosen option to the open question."""
    match get_current_step(scene):
        case ConfirmStep() as piece if value == "yes":
            apply_answer(scene, piece, {piece.name: value})
        case ConfirmStep():
            cancel_command(scene)
        case AskStep() as piece:
            taken = (
                {piece.name: value}
                if piece.parse_option is None
                else piece.parse_option(scene, value)
            )
            if not apply_answer(scene, piece, taken):
                repeat_question(scene)
        case RequestStep() as piece:
            start_step(scene, piece)
        case _:
            repeat_question(scene)


def cancel_command(scene: Turn) -> None:
    if not abandon_command(scene):
        scene.add_reply("nothing_to_cancel")
    scene.suggest_commands(scene.translate("what_next"), "menu", "help")


def submit_pin(scene: Turn, piece: PinStep, pins: PinInput) -> None:
    """Send the request of a PIN step with the PIN the user entered."""
    _send_request(scene, piece, piece.build_request(scene, pins))


def handle(scene: Turn, outcome: RequestSucceeded | RequestRejected | GatewayUnreachable) -> None:
    """Handle the outcome of the gateway request."""
    piece = get_current_step(scene)
    if piece is None or scene.conversation.stage != "executing":
        scene.end_command()
        scene.suggest_commands(scene.translate("error.general"), "menu", "person")
        return
    if isinstance(outcome, RequestRejected) and not _is_operation_limit(outcome):
        outcome = _UNREACHABLE_BY_CODE.get(outcome.code) or outcome
    match outcome:
        case RequestSucceeded(result=result):
            _go_to_next(scene, piece, piece.on_success(scene, result))
        case RequestRejected():
            _go_to_next(scene, piece, _handle_rejection(scene, piece, outcome))
        case GatewayUnreachable(uncertain=uncertain):
            _handle_unreachable(scene, piece, uncertain=uncertain)


def _is_operation_limit(refused: RequestRejected) -> bool:
    """Return whether the operation's own limit was hit, not the caller's request rate limit."""
    return refused.code == Code.RATE_LIMITED and "limit" in refused.details


def _send_request(scene: Turn, piece: Step, call: GatewayRequest) -> None:
    scene.update(stage="executing", piece=piece.name, offer=None)
    scene.request = call


def _go_to_next(scene: Turn, piece: Step, go: Next) -> None:
    if go == "end":
        scene.end_command()
        return
    if go == "on":
        scene.set_facts(**{piece.name: scene.facts.get(piece.name, "done")})
        # The following steps need their own confirmation and operation id.
        scene.update(operation=None, uncertain=False)
    advance(scene)


def _handle_rejection(scene: Turn, piece: Step, refused: RequestRejected) -> Next:
    if isinstance(piece, PinStep) and refused.code == Code.INVALID_PIN:
        return _handle_wrong_pin(scene, refused.details)
    go = piece.on_rejection(scene, refused)
    if go is None:
        scene.suggest_commands(error_messages.render_rejection(scene, refused), "menu", "person")
        return "end"
    return go


def _handle_wrong_pin(scene: Turn, details: Mapping[str, Any]) -> Next:
    left = details.get("attempts_remaining")
    if left == 0:
        _warn_if_uncertain(scene)
        scene.suggest_commands(scene.translate("pin.locked_now"), "menu", "person")
        return "end"
    if left == 1:
        scene.add_reply("pin.wrong.last_try")
    elif isinstance(left, int):
        scene.add_reply("pin.wrong", left=left)
    else:
        scene.add_reply("error.INVALID_PIN")
    return "back"


def _warn_if_uncertain(scene: Turn) -> None:
    """Warn the user before abandoning a payment whose outcome is unknown."""
    if scene.conversation.uncertain:
        scene.add_reply("send.outcome_unknown")


def _handle_unreachable(scene: Turn, piece: Step, *, uncertain: bool) -> None:
    if isinstance(piece, PinStep) and piece.moves_money and uncertain:
        scene.update(uncertain=True)
    if isinstance(piece, RequestStep):
        _offer_retry(scene)
        return
    uncertain = uncertain or scene.conversation.uncertain
    scene.add_reply(piece.uncertain_key if uncertain else "unreachable")
    start_step(scene, piece)


def _offer_retry(scene: Turn) -> None:
    scene.update(stage="collecting")
    again = Choice("again", scene.translate("retry"))
    scene.ask(scene.translate("unreachable"), [again, scene.build_command_choice("menu")])


def _ask_pin(scene: Turn, piece: PinStep) -> None:
    if scene.context.pin_entry_mode == "none":
        _warn_if_uncertain(scene)
        scene.suggest_commands(scene.translate("pin.unavailable"), "person", "menu")
        scene.end_command()
        return
    if scene.conversation.operation is None:
        scene.update(operation=scene.context.new_operation_id, form_answered=False)
    scene.update(stage="await_pin")
    text = piece.prompt(scene)
    if scene.context.pin_entry_mode == "text":
        scene.ask(f"{text}\n\n{scene.translate(f'pin.text.{piece.form}')}")
        return
    assert scene.conversation.operation is not None
    scene.update(offer=None)
    scene.replies.append(
        PinRequest(
            text=text,
            button=scene.translate("pin.button"),
            form=piece.form,
            operation=scene.conversation.operation,
        )
    )
