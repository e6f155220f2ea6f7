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
    Claimed,
    ConfirmStep,
    Next,
    PinInput,
    PinStep,
    RequestStep,
    Script,
)
from tapgate.messenger.conversation.turn import Turn
from tapgate.messenger.model.events import RequestRejected
from tapgate.messenger.model.gateway_requests import ChangePin, RegisterSubscriber, Subscriber
from tapgate.messenger.understanding import reading


def _require_unregistered(scene: Turn, found: Subscriber | None) -> Next:
    if found is None:
        return "on"
    scene.suggest_commands(scene.translate("register.already"), "balance", "menu")
    return "end"


def _parse_names(scene: Turn, text: str) -> Claimed:
    names = reading.parse_person_names(text)
    if names is None:
        return None
    return {"names": "given", "first_name": names[0], "last_name": names[1]}


def _get_summary_fields(scene: Turn) -> dict[str, str]:
    facts = scene.facts
    return {"name": f"{facts['first_name']} {facts['last_name']}", "phone": scene.phone}


def _build_register_request(scene: Turn, pins: PinInput) -> RegisterSubscriber:
    return RegisterSubscriber(
        phone=scene.phone,
        first_name=scene.facts["first_name"],
        last_name=scene.facts["last_name"],
        pin=pins.pin,
    )


def _handle_registered(scene: Turn, subscriber: Subscriber) -> Next:
    scene.update(subscriber=subscriber)
    if not scene.person.trusted:
        scene.mark_trusted()
    scene.suggest_commands(
        scene.translate("register.done", name=subscriber.first_name), "link", "kyc", "menu"
    )
    return "end"


def _handle_register_rejected(scene: Turn, refused: RequestRejected) -> Next | None:
    if refused.code == Code.DUPLICATE_PHONE:
        scene.suggest_commands(scene.translate("register.already"), "balance", "menu")
        return "end"
    fields = _get_invalid_fields(refused)
    if "pin" in fields:
        scene.add_reply("pin.weak")
        return "back"
    if fields.keys() & {"first_name", "last_name"}:
        scene.add_reply("not_understood.names")
        scene.clear_facts("names", "confirmed")
        return "back"
    return None


def _build_change_pin_request(scene: Turn, pins: PinInput) -> ChangePin:
    return ChangePin(subscriber_id=scene.subscriber.id, old_pin=pins.pin, new_pin=pins.new_pin)


def _handle_pin_changed(scene: Turn, result: object) -> Next:
    scene.suggest_commands(scene.translate("change_pin.done"), "menu")
    return "end"


def _handle_change_pin_rejected(scene: Turn, refused: RequestRejected) -> Next | None:
    if refused.code == Code.SAME_PIN:
        scene.add_reply("error.SAME_PIN")
        return "back"
    if "new_pin" in _get_invalid_fields(refused):
        scene.add_reply("pin.weak")
        return "back"
    return None


def _get_invalid_fields(refused: RequestRejected) -> Mapping[str, Any]:
    """Return the fields that the gateway rejected."""
    fields = refused.details.get("fields")
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
                prompt=lambda scene: scene.translate("register.names"),
                parse_text=_parse_names,
                not_understood_key="not_understood.names",
            ),
            ConfirmStep(
                name="confirmed",
                prompt=lambda scene: scene.translate(
                    "register.confirm", **_get_summary_fields(scene)
                ),
            ),
            PinStep(
                name="registered",
                form="new_pin",
                prompt=lambda scene: scene.translate("register.pin"),
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
                prompt=lambda scene: scene.translate("change_pin.ask"),
                build_request=_build_change_pin_request,
                on_success=_handle_pin_changed,
                on_rejection=_handle_change_pin_rejected,
                uncertain_key="change_pin.uncertain",
            ),
        ),
    ),
)
