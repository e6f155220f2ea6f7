"""Contact with support staff.

The customer's words go into requests and never into the conversation's facts, which are
stored unsealed.
"""

from typing import Final

from tapgate.messenger.conversation.commands.common_steps import PHONE_STEPS
from tapgate.messenger.conversation.steps import AskStep, ConfirmStep, Next, ParsedAnswer, Script
from tapgate.messenger.conversation.turn import Choice, Turn
from tapgate.messenger.gateway_requests import ContactSupport
from tapgate.messenger.model import RequestRejected
from tapgate.messenger.understanding import resolver
from tapgate_client.errors import Code

#: Step for a text that continues a support request. It never runs as part of the script.
FOLLOW_UP: Final = "follow_up"
#: Usual reasons for a change of the phone number; others are given in words.
_NUMBER_CHANGE_REASONS: Final = ("sim_lost", "phone_stolen", "new_number")


def can_pass_on(text: str) -> bool:
    """Return whether a text may be passed on. Bare digits may be a one-time code."""
    return any(char.isalpha() for char in text) or not any(char.isdigit() for char in text)


def build_follow_up(turn: Turn, text: str) -> ContactSupport:
    return ContactSupport(phone=turn.phone, text=text, append_only=True)


def _begin(turn: Turn, text: str) -> None:
    """Require confirmation for a guessed intent, so support is not contacted by mistake."""
    if text and resolver.match_command(text) != "person":
        turn.set_facts(guessed="yes")


def _parse_words(turn: Turn, text: str) -> ParsedAnswer:
    return ContactSupport(phone=turn.phone, text=text) if can_pass_on(text) else None


def _parse_follow_up(turn: Turn, text: str) -> ParsedAnswer:
    return build_follow_up(turn, text) if can_pass_on(text) else None


def _handle_requested(turn: Turn, result: None) -> Next:
    turn.update_person(support="open")
    return turn.finish("support.requested", "menu")


def _handle_passed_on(turn: Turn, result: None) -> Next:
    """Tell the person once that texts are passed on. A channel without later replies always does.

    Later texts get no reply, so that the chat does not interrupt the conversation with support.
    """
    if turn.person.support != "told" or not turn.context.can_send_documents:
        turn.update_person(support="told")
        turn.finish("support.passed_on", "menu")
    return "end"


def _handle_rejected(turn: Turn, error: RequestRejected) -> Next | None:
    match error.code:
        case Code.REQUEST_NOT_FOUND:
            turn.update_person(support=None)
            return turn.finish("not_understood", "menu", "help")
        case Code.RATE_LIMITED:
            return turn.finish("support.full", "menu")
        case _:
            return None


def _parse_number_change(turn: Turn, text: str) -> ParsedAnswer:
    if not can_pass_on(text):
        return None
    # Support staff read this text, in the language of the console's codes.
    return ContactSupport(phone=turn.phone, text=f"Change of phone number. Reason: {text}")


def _parse_number_change_option(turn: Turn, value: str) -> ParsedAnswer:
    return _parse_number_change(turn, turn.translate(f"change_number.{value}"))


SCRIPTS: Final = (
    Script(
        command="change_number",
        steps=(
            *PHONE_STEPS,
            AskStep(
                name="reason",
                prompt=lambda turn: turn.translate("change_number.ask"),
                choices=lambda turn: [
                    Choice(reason, turn.translate(f"change_number.{reason}"))
                    for reason in _NUMBER_CHANGE_REASONS
                ],
                parse_text=_parse_number_change,
                parse_option=_parse_number_change_option,
                not_understood_key="not_understood.support",
                on_success=_handle_requested,
                on_rejection=_handle_rejected,
            ),
        ),
    ),
    Script(
        command="person",
        on_begin=_begin,
        steps=(
            ConfirmStep(
                name="confirmed",
                is_needed=lambda turn: "guessed" in turn.facts,
                prompt=lambda turn: turn.translate("support.confirm"),
            ),
            *PHONE_STEPS,
            AskStep(
                name="words",
                prompt=lambda turn: turn.translate("support.ask"),
                parse_text=_parse_words,
                takes_any_text=True,
                not_understood_key="not_understood.support",
                on_success=_handle_requested,
                on_rejection=_handle_rejected,
            ),
            AskStep(
                name=FOLLOW_UP,
                is_needed=lambda turn: False,
                prompt=lambda turn: turn.translate("support.ask"),
                parse_text=_parse_follow_up,
                takes_any_text=True,
                not_understood_key="not_understood.support",
                on_success=_handle_passed_on,
                on_rejection=_handle_rejected,
            ),
        ),
    ),
)
