"""Account commands: registration and PIN change."""

from collections.abc import Mapping
from typing import Any, Final

from tapgate.messenger.conversation.commands.common_steps import PHONE_STEPS, SUBSCRIBER_STEPS
from tapgate.messenger.conversation.steps import (
    AskStep,
    ConfirmStep,
    Next,
    ParsedAnswer,
    PinStep,
    RequestStep,
    Script,
)
from tapgate.messenger.conversation.turn import Turn
from tapgate.messenger.gateway_requests import FindSubscriber, client_request, to_subscriber
from tapgate.messenger.model import RequestRejected, Subscriber
from tapgate.messenger.understanding.names import parse_person_names
from tapgate_client.errors import Code
from tapgate_client.schemas.subscribers import SubscriberRegistered


def _require_unregistered(turn: Turn, found: Subscriber | None) -> Next:
    if found is None:
        return "on"
    return turn.finish("register.already", "balance", "menu")


def _parse_names(turn: Turn, text: str) -> ParsedAnswer:
    names = parse_person_names(text)
    if names is None:
        return None
    return {"names": "given", "first_name": names[0], "last_name": names[1]}


def _handle_registered(turn: Turn, registered: SubscriberRegistered) -> Next:
    subscriber = to_subscriber(registered.subscriber)
    turn.update(subscriber=subscriber)
    if not turn.person.trusted:
        turn.mark_trusted()
    return turn.finish("register.done", "link", "kyc", "menu", name=subscriber.first_name)


def _handle_register_rejected(turn: Turn, error: RequestRejected) -> Next | None:
    if error.code == Code.DUPLICATE_PHONE:
        return turn.finish("register.already", "balance", "menu")
    fields = get_invalid_fields(error)
    if "pin" in fields:
        turn.add_reply("pin.weak")
        return "back"
    if fields.keys() & {"first_name", "last_name"}:
        turn.add_reply("not_understood.names")
        turn.clear_facts("names", "confirmed")
        return "back"
    return None


def _handle_change_pin_rejected(turn: Turn, error: RequestRejected) -> Next | None:
    if error.code == Code.SAME_PIN:
        turn.add_reply("error.SAME_PIN")
        return "back"
    if "new_pin" in get_invalid_fields(error):
        turn.add_reply("pin.weak")
        return "back"
    return None


def get_invalid_fields(error: RequestRejected) -> Mapping[str, Any]:
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
                build_request=lambda turn: FindSubscriber(phone=turn.phone),
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
                prompt=lambda turn: turn.translate(
                    "register.confirm",
                    name=f"{turn.facts['first_name']} {turn.facts['last_name']}",
                    phone=turn.phone,
                ),
            ),
            PinStep(
                name="registered",
                form="new_pin",
                asks_twice=True,
                prompt=lambda turn: turn.translate("register.pin"),
                build_request=lambda turn, pins: client_request(
                    "subscribers.register",
                    phone_number=turn.phone,
                    first_name=turn.facts["first_name"],
                    last_name=turn.facts["last_name"],
                    pin=pins.pin,
                    language=turn.language,
                ),
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
                build_request=lambda turn, pins: client_request(
                    "subscribers.change_pin",
                    turn.subscriber.id,
                    old_pin=pins.pin,
                    new_pin=pins.new_pin,
                ),
                on_success=lambda turn, result: turn.finish("change_pin.done", "menu"),
                on_rejection=_handle_change_pin_rejected,
                uncertain_key="change_pin.uncertain",
            ),
        ),
    ),
)
