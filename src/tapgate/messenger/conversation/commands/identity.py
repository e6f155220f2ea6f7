"""Showing who one is: a picture of each document."""

from typing import Final, get_args

import msgspec

from tapgate.errors import Code
from tapgate.images import EncodedImage
from tapgate.messenger.conversation.commands.who import SUBSCRIBER
from tapgate.messenger.conversation.pieces import Ask, Go, Script, Taken
from tapgate.messenger.conversation.scene import Choice, Scene
from tapgate.messenger.model.calls import AddDocument
from tapgate.messenger.model.events import Refused
from tapgate.messenger.model.kinds import DocumentType


def _ask_type(scene: Scene) -> str:
    return scene.text("kyc.next" if "received" in scene.facts else "kyc.type")


def _types(scene: Scene) -> list[Choice]:
    received = scene.facts.get("received", "").split()
    choices = [
        Choice(name, scene.text(f"document.{name}"), scene.text(f"document.about.{name}"))
        for name in get_args(DocumentType)
        if name not in received
    ]
    return [*choices, Choice("enough", scene.text("kyc.enough"))] if received else choices


def _chose_type(scene: Scene, value: str) -> Taken:
    if value != "enough":
        return {"type": value}
    scene.suggest(scene.text("kyc.done"), "menu")
    return "end"


def _add(scene: Scene, picture: EncodedImage) -> AddDocument:
    return AddDocument(
        subscriber_id=scene.subscriber.id,
        document_type=msgspec.convert(scene.facts["type"], DocumentType),
        picture=picture,
    )


def _added(scene: Scene, kyc_status: str) -> Go:
    received = [*scene.facts.get("received", "").split(), scene.facts["type"]]
    scene.forget("type")
    if len(received) == len(get_args(DocumentType)):
        scene.suggest(scene.text("kyc.done"), "menu")
        return "end"
    scene.know(received=" ".join(received))
    return "back"


def _not_added(scene: Scene, refused: Refused) -> Go | None:
    if refused.code == Code.RATE_LIMITED:
        return _over_limit(scene, refused)
    if refused.code not in (Code.VALIDATION_FAILED, Code.PAYLOAD_TOO_LARGE, Code.INVALID_REQUEST):
        return None
    scene.say("picture.unusable")
    return "back"


def _over_limit(scene: Scene, refused: Refused) -> Go:
    if refused.details.get("limit") != "undecided_per_type":
        scene.suggest(scene.text("kyc.too_many_today"), "menu", "person")
        return "end"
    scene.say("kyc.too_many", document=scene.text(f"document.{scene.facts['type']}"))
    scene.forget("type")
    return "back"


SCRIPTS: Final = (
    Script(
        command="kyc",
        left=lambda scene: "kyc.done" if "received" in scene.facts else "cancelled",
        pieces=(
            *SUBSCRIBER,
            Ask(name="type", prompt=_ask_type, choices=_types, chose=_chose_type),
            Ask(
                name="picture",
                prompt=lambda scene: scene.text(
                    "kyc.picture", document=scene.text(f"document.{scene.facts['type']}")
                ),
                seen=_add,
                told=_added,
                refused=_not_added,
                unread="unread.picture",
            ),
        ),
    ),
)
