"""Becoming a subscriber, and another PIN."""

from collections.abc import Mapping
from typing import Any, Final

from tapgate.errors import Code
from tapgate.messenger.conversation.commands.who import PHONE, SUBSCRIBER, find_subscriber
from tapgate.messenger.conversation.pieces import Ask, Confirm, Fetch, Go, Pin, Pins, Script, Taken
from tapgate.messenger.conversation.scene import Scene
from tapgate.messenger.model.calls import ChangePin, Register, Subscriber
from tapgate.messenger.model.events import Refused
from tapgate.messenger.understanding import reading


def _registered_before(scene: Scene, found: Subscriber | None) -> Go:
    if found is None:
        return "on"
    scene.suggest(scene.text("register.already"), "balance", "menu")
    return "end"


def _read_names(scene: Scene, text: str) -> Taken:
    names = reading.person_names(text)
    if names is None:
        return None
    return {"names": "given", "first_name": names[0], "last_name": names[1]}


def _what(scene: Scene) -> dict[str, str]:
    facts = scene.facts
    return {"name": f"{facts['first_name']} {facts['last_name']}", "phone": scene.phone}


def _register(scene: Scene, pins: Pins) -> Register:
    return Register(
        phone=scene.phone,
        first_name=scene.facts["first_name"],
        last_name=scene.facts["last_name"],
        pin=pins.pin,
    )


def _registered(scene: Scene, subscriber: Subscriber) -> Go:
    scene.change(subscriber=subscriber)
    if not scene.person.trusted:
        scene.trust()
    scene.suggest(scene.text("register.done", name=subscriber.first_name), "link", "kyc", "menu")
    return "end"


def _register_refused(scene: Scene, refused: Refused) -> Go | None:
    if refused.code == Code.DUPLICATE_PHONE:
        scene.suggest(scene.text("register.already"), "balance", "menu")
        return "end"
    fields = _fields(refused)
    if "pin" in fields:
        scene.say("pin.weak")
        return "back"
    if fields.keys() & {"first_name", "last_name"}:
        scene.say("unread.names")
        scene.forget("names", "confirmed")
        return "back"
    return None


def _change(scene: Scene, pins: Pins) -> ChangePin:
    return ChangePin(subscriber_id=scene.subscriber.id, old_pin=pins.pin, new_pin=pins.new_pin)


def _changed(scene: Scene, result: object) -> Go:
    scene.suggest(scene.text("change_pin.done"), "menu")
    return "end"


def _change_refused(scene: Scene, refused: Refused) -> Go | None:
    if refused.code == Code.SAME_PIN:
        scene.say("error.SAME_PIN")
        return "back"
    if "new_pin" in _fields(refused):
        scene.say("pin.weak")
        return "back"
    return None


def _fields(refused: Refused) -> Mapping[str, Any]:
    """The fields that the gateway did not accept."""
    fields = refused.details.get("fields")
    return fields if isinstance(fields, Mapping) else {}


SCRIPTS: Final = (
    Script(
        command="register",
        pieces=(
            *PHONE,
            Fetch(name="unregistered", call=find_subscriber, told=_registered_before),
            Ask(
                name="names",
                prompt=lambda scene: scene.text("register.names"),
                read=_read_names,
                unread="unread.names",
            ),
            Confirm(
                name="confirmed",
                prompt=lambda scene: scene.text("register.confirm", **_what(scene)),
            ),
            Pin(
                name="registered",
                form="new_pin",
                prompt=lambda scene: scene.text("register.pin"),
                call=_register,
                told=_registered,
                refused=_register_refused,
            ),
        ),
    ),
    Script(
        command="change_pin",
        pieces=(
            *SUBSCRIBER,
            Pin(
                name="changed",
                form="change_pin",
                prompt=lambda scene: scene.text("change_pin.ask"),
                call=_change,
                told=_changed,
                refused=_change_refused,
                uncertain="change_pin.uncertain",
            ),
        ),
    ),
)
