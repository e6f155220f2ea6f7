"""Interpreter for command scripts.

It starts the first open step, applies chosen options and answers, sends gateway requests and
handles their outcomes.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tapgate.messenger.conversation import error_messages
from tapgate.messenger.conversation.commands import SCRIPTS
from tapgate.messenger.conversation.steps import (
    AskStep,
    ConfirmStep,
    Next,
    ParsedAnswer,
    PinInput,
    PinStep,
    RequestStep,
    Step,
)
from tapgate.messenger.conversation.turn import Choice, Turn
from tapgate.messenger.gateway_requests import GatewayRequest
from tapgate.messenger.model import (
    OPTIONS_PER_PAGE,
    Command,
    GatewayUnreachable,
    OptionChosen,
    PinRequest,
    RequestOutcome,
    RequestRejected,
    RequestSucceeded,
)
from tapgate_client.errors import Code

#: Error codes that do not concern the request itself and are handled like an unreachable gateway.
_UNREACHABLE_BY_CODE: Final[Mapping[str, GatewayUnreachable]] = {
    Code.SERVICE_UNAVAILABLE: GatewayUnreachable(uncertain=False),
    Code.RATE_LIMITED: GatewayUnreachable(uncertain=False),
    Code.INTERNAL_ERROR: GatewayUnreachable(uncertain=True),
}


def begin_command(turn: Turn, command: Command, text: str = "") -> None:
    """Cancel a command in progress and start a command from its first step.

    A command that needs a PIN does not start if the user has no way to enter one.
    """
    script = SCRIPTS[command]
    abandon_command(turn)
    turn.update(met=None, suggested=None)
    if turn.context.pin_entry_mode == "none" and script.needs_pin(turn):
        turn.finish("pin.unavailable", "person", "menu")
        return
    turn.update(command=command, stage="collecting", piece=None)
    script.on_begin(turn, text)
    advance(turn)


def begin_with_request(
    turn: Turn, command: Command, step_name: str, request: GatewayRequest
) -> None:
    """Start a command at a step whose request is already known."""
    step = SCRIPTS[command].get_step(step_name)
    assert step is not None, "no such step"
    abandon_command(turn)
    turn.update(met=None, suggested=None, command=command)
    _send_request(turn, step, request)


def abandon_command(turn: Turn) -> bool:
    """Cancel the command in progress. Return False if there is none."""
    conversation = turn.conversation
    if conversation.command is None:
        return False
    # No notice if a request failed and waits for a retry: the user knows that it failed.
    if not isinstance(get_current_step(turn), RequestStep):
        title = turn.translate(f"title.{conversation.command}")
        turn.add_reply(SCRIPTS[conversation.command].get_cancel_key(turn), command=title)
    turn.end_command()
    turn.update(offer=None)
    return True


def get_current_step(turn: Turn) -> Step | None:
    """Return the current step of the command in progress, or None."""
    command = turn.conversation.command
    return None if command is None else SCRIPTS[command].get_step(turn.conversation.piece)


def advance(turn: Turn) -> None:
    command = turn.conversation.command
    assert command is not None
    while (step := SCRIPTS[command].get_first_open_step(turn)) is not None:
        value = step.infer_answer(turn) if isinstance(step, AskStep) else None
        if value is None:
            start_step(turn, step)
            return
        turn.set_facts(**{step.name: value})
    turn.end_command()


def start_step(turn: Turn, step: Step) -> None:
    turn.update(piece=step.name)
    match step:
        case RequestStep():
            _send_request(turn, step, step.build_request(turn))
        case AskStep():
            turn.update(stage="collecting")
            turn.ask(step.prompt(turn), step.choices(turn))
        case ConfirmStep():
            # Assign the operation ID here, so that it is stored before the PIN arrives.
            turn.update(
                stage="confirm", operation=turn.context.new_operation_id, form_answered=False
            )
            choices = [Choice(name, turn.translate(f"confirm.{name}")) for name in ("yes", "no")]
            turn.ask(step.prompt(turn), choices)
        case PinStep():
            _ask_pin(turn, step)


def repeat_question(turn: Turn, after: str | None = None, **values: object) -> None:
    """Repeat the open question, or offer to retry a failed request; otherwise, suggest commands.

    `after` is the key of a text to send before.
    """
    if after is not None:
        turn.add_reply(after, **values)
    match get_current_step(turn):
        case None:
            turn.end_command()
            turn.finish("what_next", "menu", "help")
        case RequestStep():
            _offer_retry(turn)
        case step:
            start_step(turn, step)


def reply_and_repeat_question(turn: Turn, key: str) -> None:
    """Reply and repeat the open question, in a single message if it fits."""
    repeat_question(turn)
    turn.prepend_to_last_reply(key)


def apply_answer(turn: Turn, step: Step, answer: ParsedAnswer) -> bool:
    """Apply a parsed answer and continue. Return False if it was not understood."""
    match answer:
        case None:
            return False
        case "end":
            turn.end_command()
        case Mapping():
            turn.set_facts(**answer)
            advance(turn)
        case request:
            _send_request(turn, step, request)
    return True


def handle_option(turn: Turn, event: OptionChosen) -> None:
    """Handle an option chosen by button, list row or text.

    Command options work at any time. Other options work only while they are the last ones offered.
    """
    options = turn.conversation.offer
    kind, _, command = event.id.partition(":")
    if kind == "cmd" and command in SCRIPTS:
        begin_command(turn, msgspec.convert(command, Command))
    elif options is not None and event.id == options.more.id:
        start = options.start + OPTIONS_PER_PAGE
        next_page = msgspec.structs.replace(
            options, start=start if start < len(options.options) else 0
        )
        turn.update(offer=next_page)
        turn.replies.append(next_page)
    elif options is None or event.id not in {option.id for option in options.options}:
        repeat_question(turn, "expired")
    elif event.is_late and turn.conversation.stage == "confirm":
        repeat_question(turn, "late")
    elif turn.conversation.stage == "idle":
        _save_recipient(turn)
    else:
        choose_option(turn, event.id.rpartition("#")[0])


def _save_recipient(turn: Turn) -> None:
    """Save the recipient of the last transfer: the only non-command option offered while idle."""
    recipient = turn.conversation.met
    turn.update(met=None, offer=None)
    if recipient is None:
        repeat_question(turn, "expired")
        return
    turn.save_recipient(recipient)
    first_name = recipient.name.partition(" ")[0]
    turn.finish("send.contact_saved", "send", "menu", name=first_name)


def choose_option(turn: Turn, value: str) -> None:
    """Apply the chosen option to the open question."""
    match get_current_step(turn):
        case ConfirmStep() as step if value == "yes":
            apply_answer(turn, step, {step.name: value})
        case ConfirmStep():
            cancel_command(turn)
        case AskStep() as step:
            answer = (
                {step.name: value} if step.parse_option is None else step.parse_option(turn, value)
            )
            if not apply_answer(turn, step, answer):
                repeat_question(turn)
        case RequestStep() as step:
            start_step(turn, step)
        case _:
            repeat_question(turn)


def cancel_command(turn: Turn) -> None:
    if turn.conversation.command is not None:
        SCRIPTS[turn.conversation.command].on_cancel(turn)
    turn.is_canceled = abandon_command(turn)
    if not turn.is_canceled:
        turn.add_reply("nothing_to_cancel")
    turn.finish("what_next", "menu", "help")


def submit_pin(turn: Turn, step: PinStep, pins: PinInput) -> None:
    """Send the request of a PIN step with the PIN the user entered."""
    _send_request(turn, step, step.build_request(turn, pins))


def handle_outcome(turn: Turn, outcome: RequestOutcome) -> None:
    """Handle the outcome of the gateway request."""
    step = get_current_step(turn)
    if step is None or turn.conversation.stage != "executing":
        turn.end_command()
        turn.finish("error.general", "menu", "person")
        return
    if isinstance(outcome, RequestRejected) and not _is_operation_limit(outcome):
        outcome = _UNREACHABLE_BY_CODE.get(outcome.code) or outcome
    match outcome:
        case RequestSucceeded(result=result):
            _go_to_next(turn, step, step.on_success(turn, result))
        case RequestRejected():
            _go_to_next(turn, step, _handle_rejection(turn, step, outcome))
        case GatewayUnreachable(uncertain=uncertain):
            _handle_unreachable(turn, step, uncertain=uncertain)


def _is_operation_limit(error: RequestRejected) -> bool:
    """Return whether the operation's own limit was hit, not the caller's request rate limit."""
    return error.code == Code.RATE_LIMITED and "limit" in error.details


def _send_request(turn: Turn, step: Step, request: GatewayRequest) -> None:
    turn.update(stage="executing", piece=step.name, offer=None)
    turn.request = request


def _go_to_next(turn: Turn, step: Step, next_action: Next) -> None:
    if next_action == "end":
        turn.end_command()
        return
    if next_action == "on":
        turn.set_facts(**{step.name: turn.facts.get(step.name, "done")})
        # The following steps need their own confirmation and operation ID.
        turn.update(operation=None, uncertain=False)
    advance(turn)


def _handle_rejection(turn: Turn, step: Step, error: RequestRejected) -> Next:
    if isinstance(step, PinStep) and error.code == Code.INVALID_PIN:
        return _handle_wrong_pin(turn, error.details)
    next_action = step.on_rejection(turn, error)
    if next_action is None:
        text = error_messages.render_rejection(turn, error)
        if error.code == Code.ACCOUNT_LOCKED:
            return turn.suggest_commands(text, "reset_pin", "person", "menu")
        return turn.suggest_commands(text, "menu", "person")
    return next_action


def _handle_wrong_pin(turn: Turn, details: Mapping[str, Any]) -> Next:
    attempts_left = details.get("attempts_remaining")
    if attempts_left == 0:
        _warn_if_uncertain(turn)
        return turn.finish("pin.locked_now", "reset_pin", "person", "menu")
    if attempts_left == 1:
        turn.add_reply("pin.wrong.last_try")
    elif isinstance(attempts_left, int):
        turn.add_reply("pin.wrong", left=attempts_left)
    else:
        turn.add_reply("error.INVALID_PIN")
    return "back"


def _warn_if_uncertain(turn: Turn) -> None:
    """Warn the user before abandoning a transfer whose outcome is unknown."""
    if turn.conversation.uncertain:
        turn.add_reply("send.outcome_unknown")


def _handle_unreachable(turn: Turn, step: Step, *, uncertain: bool) -> None:
    if step.on_unreachable is not None:
        _go_to_next(turn, step, step.on_unreachable(turn))
        return
    if isinstance(step, PinStep) and step.moves_money and uncertain:
        turn.update(uncertain=True)
    if isinstance(step, RequestStep):
        _offer_retry(turn)
        return
    uncertain = uncertain or turn.conversation.uncertain
    turn.add_reply(step.uncertain_key if uncertain else "unreachable")
    start_step(turn, step)


def _offer_retry(turn: Turn) -> None:
    turn.update(stage="collecting")
    retry = Choice("again", turn.translate("retry"))
    turn.ask(turn.translate("unreachable"), [retry, turn.build_command_choice("menu")])


def _ask_pin(turn: Turn, step: PinStep) -> None:
    if turn.context.pin_entry_mode == "none":
        _warn_if_uncertain(turn)
        turn.finish("pin.unavailable", "person", "menu")
        turn.end_command()
        return
    if turn.conversation.operation is None:
        turn.update(operation=turn.context.new_operation_id, form_answered=False)
    turn.update(stage="await_pin")
    text = step.prompt(turn)
    if turn.context.pin_entry_mode == "text":
        turn.ask(f"{text}\n\n{turn.translate(f'pin.text.{step.form}')}")
        return
    assert turn.conversation.operation is not None
    turn.update(offer=None)
    turn.replies.append(
        PinRequest(
            text=text,
            button=turn.translate(f"pin.button.{step.form}"),
            form=step.form,
            operation=turn.conversation.operation,
        )
    )
