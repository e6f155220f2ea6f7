"""Account commands: registration and PIN change."""

from collections.abc import Mapping
from typing import Any, Final

from tapgate.errors import Code
from tapgate.messenger.conversation.commands.common_steps import (
    PHONE_STEPS,
    SUBSCRIBER_STEPS,
    build_subscriber_request,
)
from tapgate.messenger.conversation.steps import (
    AskStep,
    ConfirmStep,
    Next,
    ParsedAnswer,
    PinInput,
    PinStep,
    RequestStep,
    Script,
)
from tapgate.messenger.conversation.turn import Turn
from tapgate.messenger.gateway_requests import ChangePin, RegisterSubscriber
from tapgate.messenger.model.events import RequestRejected
from tapgate.messenger.model.people import Subscriber
from tapgate.messenger.understanding import reading


def _require_unregistered(turn: Turn, found: Subscriber | None) -> Next:
    if found is None:
        return "on"
    turn.suggest_commands(turn.translate("register.already"), "balance", "menu")
    return "end"


def _parse_names(turn: Turn, text: str) -> ParsedAnswer:
    names = reading.parse_person_names(text)
    if names is None:
        return None
    return {"names": "given", "first_name": names[0], "last_name": names[1]}


def _get_summary_fields(turn: Turn) -> dict[str, str]:
    facts = turn.facts
    return {"name": f"{facts['first_name']} {facts['last_name']}", "phone": turn.phone}


def _build_register_request(turn: Turn, pins: PinInput) -> RegisterSubscriber:
    return RegisterSubscriber(
        phone=turn.phone,
        first_name=turn.facts["first_name"],
        last_name=turn.facts["last_name"],
        pin=pins.pin,
    )


def _handle_registered(turn: Turn, subscriber: Subscriber) -> Next:
    turn.update(subscriber=subscriber)
    if not turn.person.trusted:
        turn.mark_trusted()
    turn.suggest_commands(
        turn.translate("register.done", name=subscriber.first_name), "link", "kyc", "menu"
    )
    return "end"


def _handle_register_rejected(turn: Turn, error: RequestRejected) -> Next | None:
    if error.code == Code.DUPLICATE_PHONE:
        turn.suggest_commands(turn.translate("register.already"), "balance", "menu")
        return "end"
    fields = _get_invalid_fields(error)
    if "pin" in fields:
        turn.add_reply("pin.weak")
        return "back"
    if fields.keys() & {"first_name", "last_name"}:
        turn.add_reply("not_understood.names")
        turn.clear_facts("names", "confirmed")
        return "back"
    return None


def _build_change_pin_request(turn: Turn, pins: PinInput) -> ChangePin:
    return ChangePin(subscriber_id=turn.subscriber.id, old_pin=pins.pin, new_pin=pins.new_pin)


def _handle_pin_changed(turn: Turn, result: object) -> Next:
    turn.suggest_commands(turn.translate("change_pin.done"), "menu")
    return "end"


def _handle_change_pin_rejected(turn: Turn, error: RequestRejected) -> Next | None:
    if error.code == Code.SAME_PIN:
        turn.add_reply("error.SAME_PIN")
        return "back"
    if "new_pin" in _get_invalid_fields(error):
        turn.add_reply("pin.weak")
        return "back"
    return None


def _get_invalid_fields(error: RequestRejected) -> Mapping[str, Any]:
    """Return the fields that the gateway rejected, with their errors."""
    fields = error.details.get("fields")
    return fields if isinstance(fields, Mapping) else {}


SCRIPTS: Final = (
    Script(
        command="register",
        steps=(
            *PHONE_STEPS,
            RequestStep(
                name="unregistered",
                build_request=build_subscriber_request,
                on_success=_require_unregistered,
            ),
            AskStep(
                name="names",
                prompt=lambda turn: turn.translate("register.names"),
                parse_text=_parse_names,
                not_understood_key="not_understood.names",
            ),
            ConfirmStep(
                name="confirmed",
                prompt=lambda turn: turn.translate("register.confirm", **_get_summary_fields(turn)),
            ),
            PinStep(
                name="registered",
                form="new_pin",
                prompt=lambda turn: turn.translate("register.pin"),
                build_request=_build_register_request,
                on_success=_handle_registered,
                on_rejection=_handle_register_rejected,
            ),
        ),
    ),
    Script(
        command="change_pin",
        steps=(
            *SUBSCRIBER_STEPS,
            PinStep(
                name="changed",
                form="change_pin",
                prompt=lambda turn: turn.translate("change_pin.ask"),
                build_request=_build_change_pin_request,
                on_success=_handle_pin_changed,
                on_rejection=_handle_change_pin_rejected,
                uncertain_key="change_pin.uncertain",
            ),
        ),
    ),
)
