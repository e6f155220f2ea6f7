"""KYC command: identity verification with a picture of each document."""

from typing import Final, get_args

import msgspec

from tapgate.errors import Code
from tapgate.images import EncodedImage
from tapgate.messenger.conversation.commands.common_steps import SUBSCRIBER_STEPS
from tapgate.messenger.conversation.steps import AskStep, Claimed, Next, Script
from tapgate.messenger.conversation.turn import Choice, Turn
from tapgate.messenger.model.common import DocumentType
from tapgate.messenger.model.events import RequestRejected
from tapgate.messenger.model.gateway_requests import AddDocument


def _render_type_question(scene: Turn) -> str:
    return scene.translate("kyc.next" if "received" in scene.facts else "kyc.type")


def _list_document_types(scene: Turn) -> list[Choice]:
    received = scene.facts.get("received", "").split()
    choices = [
        Choice(
            name,
            scene.translate(f"document.{name}"),
            scene.translate(f"document.description.{name}"),
        )
        for name in get_args(DocumentType)
        if name not in received
    ]
    return [*choices, Choice("enough", scene.translate("kyc.finish"))] if received else choices


def _parse_type_option(scene: Turn, value: str) -> Claimed:
    if value != "enough":
        return {"type": value}
    scene.suggest_commands(scene.translate("kyc.done"), "menu")
    return "end"


def _build_add_document_request(scene: Turn, picture: EncodedImage) -> AddDocument:
    return AddDocument(
        subscriber_id=scene.subscriber.id,
        document_type=msgspec.convert(scene.facts["type"], DocumentType),
        image=picture,
    )


def _handle_document_added(scene: Turn, kyc_status: str) -> Next:
    received = [*scene.facts.get("received", "").split(), scene.facts["type"]]
    scene.clear_facts("type")
    if len(received) == len(get_args(DocumentType)):
        scene.suggest_commands(scene.translate("kyc.done"), "menu")
        return "end"
    scene.set_facts(received=" ".join(received))
    return "back"


def _handle_document_rejected(scene: Turn, refused: RequestRejected) -> Next | None:
    if refused.code == Code.RATE_LIMITED:
        return _handle_document_limit(scene, refused)
    if refused.code not in (Code.VALIDATION_FAILED, Code.PAYLOAD_TOO_LARGE, Code.INVALID_REQUEST):
        return None
    scene.add_reply("picture.unusable")
    return "back"


def _handle_document_limit(scene: Turn, refused: RequestRejected) -> Next:
    if refused.details.get("limit") != "undecided_per_type":
        scene.suggest_commands(scene.translate("kyc.too_many_today"), "menu", "person")
        return "end"
    scene.add_reply("kyc.too_many", document=scene.translate(f"document.{scene.facts['type']}"))
    scene.clear_facts("type")
    return "back"


SCRIPTS: Final = (
    Script(
        command="kyc",
        get_cancel_key=lambda scene: "kyc.done" if "received" in scene.facts else "canceled",
        steps=(
            *SUBSCRIBER_STEPS,
            AskStep(
                name="type",
                prompt=_render_type_question,
                choices=_list_document_types,
                parse_option=_parse_type_option,
            ),
            AskStep(
                name="picture",
                prompt=lambda scene: scene.translate(
                    "kyc.picture", document=scene.translate(f"document.{scene.facts['type']}")
                ),
                parse_image=_build_add_document_request,
                on_success=_handle_document_added,
                on_rejection=_handle_document_rejected,
                not_understood_key="not_understood.picture",
            ),
        ),
    ),
)
