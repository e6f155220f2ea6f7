"""Who is spoken to: what a script needs before it shows or moves anything of a wallet."""

import re
from typing import Final

from tapgate.errors import Code
from tapgate.messenger.conversation.pieces import Ask, Fetch, Go, Pin, Pins, Taken, never
from tapgate.messenger.conversation.scene import Choice, Scene
from tapgate.messenger.model.calls import CheckCode, FindSubscriber, SendCode, Subscriber, VerifyPin
from tapgate.messenger.model.events import Refused
from tapgate.messenger.understanding import reading

_CODE: Final = re.compile(r"[0-9]{6}")
_GAPS: Final = re.compile(r"(?<=[0-9])[\s-]+(?=[0-9])")


def _hides_phone(scene: Scene) -> bool:
    return scene.person.phone is None


def _read_phone(scene: Scene, text: str) -> Taken:
    phone = reading.phone(text, None)
    return None if phone is None else {"phone": phone}


def _read_code(scene: Scene, text: str) -> Taken:
    figures = re.findall(r"[0-9]+", _GAPS.sub("", text))
    if len(figures) != 1 or not _CODE.fullmatch(figures[0]):
        return None
    return CheckCode(phone=scene.facts["phone"], code=figures[0])


def _other_way(scene: Scene, value: str) -> Taken:
    """Another code, or another number."""
    scene.forget("code_sent", *(["phone"] if value == "phone" else []))
    return {}


def _code_checked(scene: Scene, is_right: bool) -> Go:
    if not is_right:
        scene.say("code.wrong")
        return "back"
    scene.prove_phone(scene.facts["phone"])
    scene.say("code.right")
    return "on"


def _code_refused(scene: Scene, refused: Refused) -> Go | None:
    if refused.code != Code.INVALID_OTP:
        return None
    scene.say("code.used_up")
    scene.forget("phone", "code_sent")
    return "back"


#: For somebody who does not show a number: they prove that they hold the phone.
PHONE: Final = (
    Ask(
        name="phone",
        needed=_hides_phone,
        prompt=lambda scene: scene.text("phone.ask"),
        read=_read_phone,
        unread="unread.phone",
    ),
    Fetch(
        name="code_sent",
        needed=_hides_phone,
        call=lambda scene: SendCode(phone=scene.facts["phone"]),
    ),
    Ask(
        name="code",
        needed=_hides_phone,
        prompt=lambda scene: scene.text("code.ask"),
        choices=lambda scene: [
            Choice("code", scene.text("code.again")),
            Choice("phone", scene.text("code.other_phone")),
        ],
        read=_read_code,
        chose=_other_way,
        sounds_like_pin=never,
        unread="unread.code",
        told=_code_checked,
        refused=_code_refused,
    ),
)


def find_subscriber(scene: Scene) -> FindSubscriber:
    return FindSubscriber(phone=scene.phone)


def _found(scene: Scene, found: Subscriber | None) -> Go:
    scene.change(subscriber=found)
    if found is None:
        scene.suggest(scene.text("not_registered"), "register", "help", yes="register")
        return "end"
    if found.status.upper() != "ACTIVE":
        scene.suggest(scene.text("not_active"), "person", "menu")
        return "end"
    return "on"


def _pin_verified(scene: Scene, result: object) -> Go:
    scene.trust()
    return "on"


def _verify(scene: Scene, pins: Pins) -> VerifyPin:
    return VerifyPin(subscriber_id=scene.subscriber.id, pin=pins.pin)


#: For everything of a wallet: whose it is, and after a change of number the PIN once.
SUBSCRIBER: Final = (
    *PHONE,
    Fetch(name="subscriber", call=find_subscriber, told=_found),
    Pin(
        name="trust",
        needed=lambda scene: not scene.person.trusted,
        prompt=lambda scene: scene.text("trust.ask"),
        call=_verify,
        told=_pin_verified,
    ),
)
