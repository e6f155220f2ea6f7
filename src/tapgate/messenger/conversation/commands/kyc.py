"""KYC command: identity verification with a picture of each document."""

from typing import Final

from tapgate.errors import Code
from tapgate.images import EncodedImage
from tapgate.messenger.conversation.commands.common_steps import SUBSCRIBER_STEPS
from tapgate.messenger.conversation.steps import AskStep, Next, ParsedAnswer, Script
from tapgate.messenger.conversation.turn import Choice, Turn
from tapgate.messenger.gateway_requests import AddDocument
from tapgate.messenger.model import RequestRejected
from tapgate.schemas.subscribers import KycDocumentType


def _render_type_question(turn: Turn) -> str:
    return turn.translate("kyc.next" if "received" in turn.facts else "kyc.type")


def _list_document_types(turn: Turn) -> list[Choice]:
    received = turn.facts.get("received", "").split()
    choices = [
        Choice(
            name, turn.translate(f"document.{name}"), turn.translate(f"document.description.{name}")
        )
        for name in KycDocumentType
        if name not in received
    ]
    return [*choices, Choice("enough", turn.translate("kyc.finish"))] if received else choices


def _parse_type_option(turn: Turn, value: str) -> ParsedAnswer:
    if value != "enough":
        return {"type": value}
    return turn.finish("kyc.done", "menu")


def _build_add_document_request(turn: Turn, picture: EncodedImage) -> AddDocument:
    return AddDocument(
        subscriber_id=turn.subscriber.id,
        document_type=KycDocumentType(turn.facts["type"]),
        image=picture,
    )


def _handle_document_added(turn: Turn, result: object) -> Next:
    received = [*turn.facts.get("received", "").split(), turn.facts["type"]]
    turn.clear_facts("type")
    if len(received) == len(KycDocumentType):
        return turn.finish("kyc.done", "menu")
    turn.set_facts(received=" ".join(received))
    return "back"


def _handle_document_rejected(turn: Turn, error: RequestRejected) -> Next | None:
    if error.code == Code.RATE_LIMITED:
        return _handle_document_limit(turn, error)
    if error.code not in (Code.VALIDATION_FAILED, Code.PAYLOAD_TOO_LARGE, Code.INVALID_REQUEST):
        return None
    turn.add_reply("picture.unusable")
    return "back"


def _handle_document_limit(turn: Turn, error: RequestRejected) -> Next:
    if error.details.get("limit") != "undecided_per_type":
        return turn.finish("kyc.too_many_today", "menu", "person")
    turn.add_reply("kyc.too_many", document=turn.translate(f"document.{turn.facts['type']}"))
    turn.clear_facts("type")
    return "back"


SCRIPTS: Final = (
    Script(
        command="kyc",
        get_cancel_key=lambda turn: "kyc.done" if "received" in turn.facts else "canceled",
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
                prompt=lambda turn: turn.translate(
                    "kyc.picture", document=turn.translate(f"document.{turn.facts['type']}")
                ),
                parse_image=_build_add_document_request,
                on_success=_handle_document_added,
                on_rejection=_handle_document_rejected,
                not_understood_key="not_understood.picture",
            ),
        ),
    ),
)
