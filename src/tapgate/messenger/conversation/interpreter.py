"""Interpreter for command scripts.

It performs moves: it starts commands and their steps, applies answers, sends gateway requests and
handles their outcomes.
"""

from collections.abc import Mapping
from typing import Any, Final, assert_never

import msgspec

from tapgate.messenger.conversation.commands import SCRIPTS, support
from tapgate.messenger.conversation.moves import (
    AnswerImage,
    AnswerText,
    Begin,
    Cancel,
    Confirm,
    Correct,
    ListOptions,
    Move,
    PassOn,
    Repeat,
    Say,
    SubmitPin,
    Suggest,
)
from tapgate.messenger.conversation.state import Conversation, LaterWish
from tapgate.messenger.conversation.steps import (
    SUBJECT,
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
#: Fact with the digest of a new PIN that was entered once.
_FIRST_PIN: Final = "first_pin"


def get_current_step(command: Command | None, name: str | None) -> Step | None:
    """Return the command's current step, or None if no command is in progress."""
    return None if command is None else SCRIPTS[command].get_step(name)


def perform(turn: Turn, move: Move | None) -> None:
    """Perform a move and the moves that follow from it, until the turn ends or sends a request."""
    while move is not None:
        move = _perform(turn, _get_step(turn), move)
    _begin_later_wish(turn)


def _get_step(turn: Turn) -> Step | None:
    return get_current_step(turn.conversation.command, turn.conversation.step)


def _perform(turn: Turn, step: Step | None, move: Move) -> Move | None:  # noqa: PLR0912 - one branch per move
    """Perform one move and return the next one, or None at the end."""
    match move:
        case Begin(command, text, later, subject_id):
            facts = {} if subject_id is None else {SUBJECT: subject_id}
            _begin_command(turn, command, text, facts)
            turn.update(later=None if later is None else _prepare_later_wish(turn, later))
        case Correct(text, otherwise):
            return _correct_answer(turn, text, otherwise)
        case Cancel():
            return _cancel_command(turn)
        case Repeat():
            return _repeat_question(turn, step, move)
        case Confirm():
            assert isinstance(step, ConfirmStep)
            _apply_answer(turn, step, {step.name: "yes"})
        case AnswerText(text, otherwise):
            assert isinstance(step, AskStep) and step.parse_text is not None
            answer = step.parse_text(turn, text)
            if answer is None:
                return otherwise
            _apply_answer(turn, step, answer)
        case AnswerImage(image):
            assert isinstance(step, AskStep) and step.parse_image is not None
            _send_request(turn, step, step.parse_image(turn, image))
        case SubmitPin(pins):
            assert isinstance(step, PinStep)
            if not _must_repeat_pin(turn, step, pins):
                _send_request(turn, step, step.build_request(turn, pins))
        case PassOn(text):
            _pass_on(turn, text)
        case Say(key, declines_suggestion):
            if declines_suggestion:
                turn.update(suggested=None)
            turn.add_reply(key)
        case Suggest(key, commands, yes):
            turn.finish(key, *commands, yes=yes)
        case ListOptions():
            assert turn.conversation.offer is not None
            turn.replies.append(turn.conversation.offer)
            turn.prepend_to_last_reply("option_not_listed")
        case OptionChosen():
            return _handle_option(turn, step, move)
        case RequestSucceeded() | RequestRejected() | GatewayUnreachable():
            _handle_outcome(turn, step, move)
        case _:
            assert_never(move)
    return None


# Commands


def _begin_command(
    turn: Turn, command: Command, text: str, facts: Mapping[str, str] | None = None
) -> None:
    """Start a command, unless it needs a PIN and the user has no way to enter one."""
    script = SCRIPTS[command]
    _abandon_command(turn)
    if turn.context.pin_entry_mode == "none" and script.needs_pin(turn):
        turn.update(met=None)
        turn.finish("pin.unavailable", "person", "menu")
        return
    turn.update(met=None, suggested=None, command=command, stage="collecting", step=None)
    script.on_begin(turn, text)
    turn.set_facts(**facts or {})
    _advance(turn)


def _prepare_later_wish(turn: Turn, wish: Begin) -> LaterWish:
    """Return the wish with the facts from its words, which are not stored."""
    script = SCRIPTS[wish.command]
    reading = Turn(turn.person, Conversation(), turn.context)
    if script.steps:
        script.on_begin(reading, wish.text)
    return LaterWish(command=wish.command, facts=reading.facts)


def _begin_later_wish(turn: Turn) -> None:
    """Start the later wish once the command in progress has ended."""
    conversation = turn.conversation
    wish = conversation.later
    if wish is None or conversation.command is not None:
        return
    turn.update(later=None)
    _begin_command(turn, wish.command, "", wish.facts)


def _correct_answer(turn: Turn, text: str, otherwise: Move) -> Move | None:
    command = turn.conversation.command
    correct = None if command is None else SCRIPTS[command].correct
    if correct is None or not correct(turn, text):
        return otherwise
    # A corrected operation needs its own confirmation and ID. A form of the old one expires.
    turn.update(operation=None, offer=None)
    _advance(turn)
    return None


def _pass_on(turn: Turn, text: str) -> None:
    """Start the support command at its follow-up step, whose request is already known."""
    step = SCRIPTS["person"].get_step(support.FOLLOW_UP)
    assert step is not None
    request = support.build_follow_up(turn, text)
    _abandon_command(turn)
    turn.update(met=None, suggested=None, command="person")
    _send_request(turn, step, request)


def _cancel_command(turn: Turn) -> Move | None:
    turn.update(later=None)
    step = _get_step(turn)
    if isinstance(step, ConfirmStep) and step.accepts_no:
        _apply_answer(turn, step, {step.name: "no"})
        return None
    if turn.conversation.command is not None:
        SCRIPTS[turn.conversation.command].on_cancel(turn)
    turn.is_canceled = _abandon_command(turn)
    if not turn.is_canceled:
        turn.add_reply("nothing_to_cancel")
    return Suggest("what_next", ("menu", "help"))


def _abandon_command(turn: Turn) -> bool:
    """End the command in progress before its end. Return False if there is none."""
    command = turn.conversation.command
    if command is None:
        return False
    # No notice if a request failed and waits for a retry: the user knows that it failed.
    if not isinstance(_get_step(turn), RequestStep):
        title = turn.translate(f"title.{command}")
        turn.add_reply(SCRIPTS[command].get_cancel_key(turn), command=title)
    turn.end_command()
    turn.update(offer=None)
    return True


# Steps


def _advance(turn: Turn) -> None:
    """Start the first open step, or end the command."""
    command = turn.conversation.command
    assert command is not None
    while (step := SCRIPTS[command].get_first_open_step(turn)) is not None:
        value = step.infer_answer(turn) if isinstance(step, AskStep) else None
        if value is None:
            _start_step(turn, step)
            return
        turn.set_facts(**{step.name: value})
    turn.end_command()


def _start_step(turn: Turn, step: Step) -> None:
    match step:
        case RequestStep():
            _send_request(turn, step, step.build_request(turn))
        case AskStep():
            turn.update(step=step.name, stage="collecting")
            turn.ask(step.prompt(turn), step.choices(turn))
        case ConfirmStep():
            # Assign the operation ID here, so that it is stored before the PIN arrives.
            turn.update(
                step=step.name,
                stage="confirm",
                operation=turn.context.new_operation_id,
                form_answered=False,
            )
            choices = [Choice(name, turn.translate(f"confirm.{name}")) for name in ("yes", "no")]
            turn.ask(step.prompt(turn), choices)
        case PinStep():
            _ask_pin(turn, step)


def _ask_pin(turn: Turn, step: PinStep) -> None:
    if turn.context.pin_entry_mode == "none":
        _warn_if_uncertain(turn)
        turn.finish("pin.unavailable", "person", "menu")
        turn.end_command()
        return
    operation = turn.conversation.operation
    if operation is None:
        operation = turn.context.new_operation_id
        turn.update(operation=operation, form_answered=False)
    turn.update(step=step.name, stage="await_pin")
    text = step.prompt(turn)
    if turn.context.pin_entry_mode == "text":
        if _FIRST_PIN in turn.facts:
            turn.ask(turn.translate("pin.repeat"))
            return
        turn.ask(f"{text}\n\n{turn.translate(f'pin.text.{step.form}')}")
        return
    turn.update(offer=None)
    button = turn.translate(f"pin.button.{step.form}")
    turn.replies.append(PinRequest(text=text, button=button, form=step.form, operation=operation))


def _must_repeat_pin(turn: Turn, step: PinStep, pins: PinInput) -> bool:
    """Ask for a new PIN a second time, and compare. Only a keyed digest is kept in between."""
    if not step.asks_twice or turn.context.pin_entry_mode != "text":
        return False
    digest = turn.context.digest(f"{turn.conversation.operation}:{pins.pin}")
    first = turn.facts.get(_FIRST_PIN)
    turn.clear_facts(_FIRST_PIN)
    if first is None:
        turn.set_facts(**{_FIRST_PIN: digest})
    elif first != digest:
        turn.add_reply("pin.mismatch")
    else:
        return False
    _start_step(turn, step)
    return True


def _repeat_question(turn: Turn, step: Step | None, move: Repeat) -> Move | None:
    if move.key is not None and not move.joined:
        turn.add_reply(move.key, currency=turn.context.currency)
    match step:
        case None:
            turn.end_command()
            turn.finish("what_next", "menu", "help")
        case RequestStep():
            _offer_retry(turn)
        case _:
            _start_step(turn, step)
    if move.key is not None and move.joined:
        turn.prepend_to_last_reply(move.key)
    return None


def _apply_answer(turn: Turn, step: Step, answer: ParsedAnswer) -> None:
    match answer:
        case "end":
            turn.end_command()
        case Mapping():
            turn.set_facts(**answer)
            _advance(turn)
        case GatewayRequest():
            _send_request(turn, step, answer)


def _send_request(turn: Turn, step: Step, request: GatewayRequest) -> None:
    turn.update(stage="executing", step=step.name, offer=None)
    turn.request = request


# Options


def _handle_option(turn: Turn, step: Step | None, move: OptionChosen) -> Move | None:
    """Handle an option chosen by button, list row or text.

    Command options work at any time. Other options work only while they are the last ones offered.
    A command option may end with the ID of the record below which it is.
    """
    offer, stage = turn.conversation.offer, turn.conversation.stage
    kind, _, named = move.id.partition(":")
    command, _, subject_id = named.partition(":")
    if kind == "cmd" and command in SCRIPTS:
        return Begin(msgspec.convert(command, Command), subject_id=subject_id or None)
    if offer is not None and move.id == offer.more.id:
        start = offer.start + OPTIONS_PER_PAGE
        offer = msgspec.structs.replace(offer, start=start if start < len(offer.options) else 0)
        turn.update(offer=offer)
        turn.replies.append(offer)
        return None
    if offer is None or move.id not in {option.id for option in offer.options}:
        return Repeat("expired")
    if move.is_late and stage == "confirm":
        return Repeat("late")
    if stage == "idle":
        return _save_recipient(turn)
    return _choose_option(turn, step, move.id.rpartition("#")[0])


def _save_recipient(turn: Turn) -> Move | None:
    """Save the last transfer's recipient: the only non-command option offered while idle."""
    recipient = turn.conversation.met
    turn.update(met=None, offer=None)
    if recipient is None:
        return Repeat("expired")
    turn.save_recipient(recipient)
    first_name = recipient.name.partition(" ")[0]
    turn.finish("send.contact_saved", "send", "menu", name=first_name)
    return None


def _choose_option(turn: Turn, step: Step | None, value: str) -> Move | None:
    """Apply the chosen option to the open question."""
    match step:
        case ConfirmStep():
            return Confirm() if value == "yes" else Cancel()
        case AskStep():
            answer = (
                {step.name: value} if step.parse_option is None else step.parse_option(turn, value)
            )
            if answer is None:
                return Repeat()
            _apply_answer(turn, step, answer)
        case RequestStep():
            _start_step(turn, step)
        case _:
            return Repeat()
    return None


# Gateway responses


def _handle_outcome(turn: Turn, step: Step | None, outcome: RequestOutcome) -> None:
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


def _go_to_next(turn: Turn, step: Step, next_action: Next) -> None:
    if next_action == "end":
        turn.end_command()
        return
    if next_action == "on":
        # The following steps need their own confirmation and operation ID.
        facts = {**turn.facts, step.name: turn.facts.get(step.name, "done")}
        turn.update(facts=facts, operation=None, uncertain=False)
    _advance(turn)


def _handle_rejection(turn: Turn, step: Step, error: RequestRejected) -> Next:
    if isinstance(step, PinStep) and error.code == Code.INVALID_PIN:
        return _handle_wrong_pin(turn, error.details)
    next_action = step.on_rejection(turn, error)
    if next_action is None:
        text = turn.render_rejection(error)
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
    if isinstance(step, RequestStep):
        _offer_retry(turn)
        return
    if isinstance(step, PinStep) and step.moves_money and uncertain:
        turn.update(uncertain=True)
    uncertain = uncertain or turn.conversation.uncertain
    turn.add_reply(step.uncertain_key if uncertain else "unreachable")
    _start_step(turn, step)


def _offer_retry(turn: Turn) -> None:
    turn.update(stage="collecting")
    retry = Choice("again", turn.translate("retry"))
    turn.ask(turn.translate("unreachable"), [retry, turn.build_command_choice("menu")])
