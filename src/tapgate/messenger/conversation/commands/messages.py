"""Answers to messages from the gateway: opting out of them, and objecting to a phone change."""

from typing import Final, Literal

from tapgate.messenger.conversation.commands.common_steps import PHONE_STEPS
from tapgate.messenger.conversation.steps import Next, RequestStep, Script
from tapgate.messenger.conversation.turn import Turn
from tapgate.messenger.gateway_requests import FindSubscriber, ObjectToPhoneChange, client_request
from tapgate.messenger.model import Subscriber
from tapgate_client.schemas.subscribers import MessagePreference


def _handle_subscriber(turn: Turn, found: Subscriber | None) -> Next:
    turn.update(subscriber=found)
    return "on" if found is not None else turn.finish("opt_out.not_registered", "menu")


def _build_preference_script(
    command: Literal["opt_out", "opt_in"], preference: MessagePreference
) -> Script:
    """Build the script that sets which messages the subscriber gets, whatever the status."""
    return Script(
        command=command,
        steps=(
            *PHONE_STEPS,
            RequestStep(
                name="subscriber",
                build_request=lambda turn: FindSubscriber(phone=turn.phone),
                on_success=_handle_subscriber,
            ),
            RequestStep(
                name="preference",
                build_request=lambda turn: client_request(
                    "subscribers.update", turn.subscriber.id, messages=preference
                ),
                on_success=lambda turn, result: turn.finish(command, "menu"),
            ),
        ),
    )


def _handle_objection(turn: Turn, is_blocked: bool) -> Next:
    if not is_blocked:
        return turn.finish("not_me.not_possible", "person", "block", "menu", yes="person")
    # The gateway has opened a support request, to which further texts are passed on.
    turn.update_person(support="open")
    return turn.finish("not_me.blocked", "menu")


SCRIPTS: Final = (
    _build_preference_script("opt_out", MessagePreference.ESSENTIAL),
    _build_preference_script("opt_in", MessagePreference.ALL),
    Script(
        command="not_me",
        steps=(
            *PHONE_STEPS,
            RequestStep(
                name="objection",
                build_request=lambda turn: ObjectToPhoneChange(phone=turn.phone),
                on_success=_handle_objection,
            ),
        ),
    ),
)
