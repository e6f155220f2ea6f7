"""KYC command: identity verification with a picture of each document."""

from typing import Final

from tapgate.core.images import EncodedImage
from tapgate.messenger.conversation.commands.common_steps import SUBSCRIBER_STEPS
from tapgate.messenger.conversation.steps import (
    AskStep,
    Next,
    ParsedAnswer,
    RequestStep,
    Script,
)
from tapgate.messenger.conversation.turn import Choice, Turn
from tapgate.messenger.gateway_requests import (
    AddKeptDocument,
    ClientRequest,
    CountKeptImages,
    client_request,
)
from tapgate.messenger.model import RequestRejected
from tapgate_client.errors import Code
from tapgate_client.schemas.subscribers import KycDocumentType

_UNUSABLE_IMAGE_CODES: Final = (
    Code.VALIDATION_FAILED,
    Code.PAYLOAD_TOO_LARGE,
    Code.INVALID_REQUEST,
)


def count_kept_image(turn: Turn, count: int) -> None:
    """Record a new kept image while the command is in progress."""
    if "kept" in turn.facts:
        turn.set_facts(kept=str(count))


def _get_kept_count(turn: Turn) -> int:
    return int(turn.facts.get("kept", "0"))


def _handle_kept_count(turn: Turn, count: int) -> Next:
    turn.set_facts(kept=str(count))
    turn.update(has_kept_images=False)
    return "on"


def _render_type_question(turn: Turn) -> str:
    kept_count = _get_kept_count(turn)
    if kept_count:
        prefix = "kyc.next_image" if "received" in turn.facts else "kyc.image"
        return turn.translate(prefix if kept_count == 1 else f"{prefix}.several", count=kept_count)
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
    if _get_kept_count(turn):
        return [*choices, Choice("discard", turn.translate("kyc.discard"))]
    return [*choices, Choice("enough", turn.translate("kyc.finish"))] if received else choices


def _parse_type_option(turn: Turn, value: str) -> ParsedAnswer:
    if value == "enough":
        return turn.finish("kyc.done", "menu")
    if not _get_kept_count(turn):
        return {"type": value}
    turn.set_facts(kept_type=value)
    return AddKeptDocument(
        subscriber_id=turn.subscriber.id,
        document_type=None if value == "discard" else KycDocumentType(value),
    )


def _handle_kept_document_added(turn: Turn, remaining: int | None) -> Next:
    document_type = turn.facts["kept_type"]
    turn.clear_facts("kept_type")
    turn.set_facts(kept=str(remaining or 0))
    if remaining is None:
        turn.add_reply("picture.expired")
        return "back"
    if document_type == "discard":
        turn.add_reply("picture.discarded")
        return "back" if remaining else _finish_after_discard(turn)
    return _handle_received(turn, document_type)


def _finish_after_discard(turn: Turn) -> Next:
    key = "kyc.done" if "received" in turn.facts else "what_next"
    return turn.finish(key, "kyc", "menu")


def _handle_kept_document_rejected(turn: Turn, error: RequestRejected) -> Next | None:
    document_type = turn.facts["kept_type"]
    turn.clear_facts("kept_type")
    if error.code in _UNUSABLE_IMAGE_CODES:  # the image was deleted
        turn.set_facts(kept=str(_get_kept_count(turn) - 1))
    return _handle_document_rejected(turn, error, document_type)


def _delete_kept_images(turn: Turn) -> None:
    kept_count = _get_kept_count(turn)
    if kept_count:
        turn.deletes_kept_images = True
        turn.add_reply("picture.discarded" if kept_count == 1 else "picture.all_discarded")


def _build_add_document_request(turn: Turn, picture: EncodedImage) -> ClientRequest:
    return client_request(
        "subscribers.add_kyc_document",
        turn.subscriber.id,
        document_type=KycDocumentType(turn.facts["type"]),
        image=picture.content,
    )


def _handle_document_added(turn: Turn, result: object) -> Next:
    document_type = turn.facts["type"]
    turn.clear_facts("type")
    return _handle_received(turn, document_type)


def _handle_received(turn: Turn, document_type: str) -> Next:
    received = [*turn.facts.get("received", "").split(), document_type]
    if len(received) == len(KycDocumentType):
        return turn.finish("kyc.done", "menu")
    turn.set_facts(received=" ".join(received))
    return "back"


def _handle_document_rejected(
    turn: Turn, error: RequestRejected, document_type: str | None = None
) -> Next | None:
    if error.code == Code.RATE_LIMITED:
        return _handle_document_limit(turn, error, document_type or turn.facts["type"])
    if error.code not in _UNUSABLE_IMAGE_CODES:
        return None
    turn.add_reply("picture.unusable")
    return "back"


def _handle_document_limit(turn: Turn, error: RequestRejected, document_type: str) -> Next:
    if error.details.get("limit") != "undecided_per_type":
        return turn.finish("kyc.too_many_today", "menu", "person")
    turn.add_reply("kyc.too_many", document=turn.translate(f"document.{document_type}"))
    turn.clear_facts("type")
    return "back"


SCRIPTS: Final = (
    Script(
        command="kyc",
        get_cancel_key=lambda turn: "kyc.done" if "received" in turn.facts else "canceled",
        on_cancel=_delete_kept_images,
        steps=(
            *SUBSCRIBER_STEPS,
            RequestStep(
                name="kept",
                build_request=lambda turn: CountKeptImages(),
                on_success=_handle_kept_count,
            ),
            AskStep(
                name="type",
                prompt=_render_type_question,
                choices=_list_document_types,
                parse_option=_parse_type_option,
                on_success=_handle_kept_document_added,
                on_rejection=_handle_kept_document_rejected,
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
