"""Compatibility endpoint for bridges and local tests: a message in, a plain-text reply out."""

from typing import Annotated, ClassVar, Final

import msgspec
import structlog

from tapgate.errors import ApiError
from tapgate.http.messages import Response
from tapgate.images import ImageError
from tapgate.messenger import images, rate_limits, runner
from tapgate.messenger.channel.delivery_parser import IGNORED_TYPES
from tapgate.messenger.channel.plain_text import render_plain_text
from tapgate.messenger.conversation_store import LeaseLostError
from tapgate.messenger.model.common import SecretStruct
from tapgate.messenger.model.events import ImageReceived, TextMessage, UnsupportedMessage
from tapgate.messenger.routes import parsing
from tapgate.messenger.routes.route import (
    ErrorStatus,
    HttpError,
    Request,
    SuccessStatus,
    render_json,
)
from tapgate.messenger.services import Services
from tapgate.runtime import logs

#: The channel's limit for the text of one message.
MAX_MESSAGE_LENGTH: Final = 4096
_MAX_SENDER_LENGTH: Final = 255
#: In both languages, because the person's language may be unavailable too.
_UNAVAILABLE_TEXT: Final = (
    "Tapgate is unavailable right now. Please try again in a few minutes. If you were sending"
    " money, check your history first.\n\n"
    "Tapgate est momentanément indisponible. Veuillez réessayer dans quelques minutes. Si vous"
    " étiez en train d'envoyer de l'argent, consultez d'abord votre historique."
)

_log = structlog.get_logger()

DataUri = Annotated[
    str,
    msgspec.Meta(
        description="Starts with `data:image/jpeg;base64,` or `data:image/png;base64,`",
    ),
]


class Media(SecretStruct, frozen=True, kw_only=True):
    data: DataUri | None = None
    mimetype: str | None = None
    filename: str | None = None
    size: int | float | None = None


class BridgeMessage(SecretStruct, frozen=True, kw_only=True):
    EXAMPLE: ClassVar = {
        "event": "message",
        "from": "23276123456",
        "phoneE164": "+23276123456",
        "message": "balance",
        "messageType": "text",
        "hasMedia": False,
    }

    event: Annotated[str, msgspec.Meta(description="Always `message`")]
    sender: Annotated[str, msgspec.Meta(description="ID of the sender")] = msgspec.field(
        name="from"
    )
    phoneE164: Annotated[  # noqa: N815 - name in the API
        str, msgspec.Meta(description="Phone number in E.164 format")
    ]
    message: str | None = None
    messageType: str | None = None  # noqa: N815
    hasMedia: bool | None = None  # noqa: N815
    media: Media | None = None


class BridgeResponse(msgspec.Struct, frozen=True, kw_only=True):
    EXAMPLE: ClassVar = {"answer": "Your balance is 1,250.00 SLE.", "status": "success"}

    answer: str
    status: SuccessStatus


class BridgeErrorResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Error of the bridge endpoint. `answer`, if present, is the text to show to the customer."""

    error: str
    answer: str | None = None
    status: ErrorStatus


async def receive_bridge_message(request: Request) -> Response:
    """Process a message from a bridge and return the reply.

    Each phone number has one conversation, shared by this endpoint and the webhook. `answer` is
    plain text, with numbered options instead of buttons and lists. If `hasMedia` is true, `media`
    contains a JPEG or PNG image, and `message` is ignored. Reactions, edits and deletions get an
    empty `answer`.
    """
    message = parsing.decode_body(BridgeMessage, request.body)
    phone = _validate_message(message)
    if message.messageType in IGNORED_TYPES:
        return render_json(200, BridgeResponse(answer="", status="success"))
    try:
        await _require_within_rate_limit(request.services, phone)
        result = await runner.handle_bridge_message(
            request.services, phone, await _build_event(message)
        )
    except (ApiError, LeaseLostError) as error:
        # The database or the lease is unavailable, too many images are pending, or the lease was
        # lost.
        _log.warning(
            "bridge.failed", request_id=request.request_id, failure=logs.describe_exception(error)
        )
        return _render_failure(_UNAVAILABLE_TEXT)
    reply = render_plain_text(result.replies)
    if result.has_failed:
        return _render_failure(reply or _UNAVAILABLE_TEXT)
    return render_json(200, BridgeResponse(answer=reply, status="success"))


def _validate_message(message: BridgeMessage) -> str:
    """Validate everything except the image itself, and return the phone number."""
    if message.event != "message":
        raise HttpError(400, "event must be message" if message.event else "event is required")
    parsing.require_text(message.sender, "from", max_length=_MAX_SENDER_LENGTH)
    if not message.phoneE164:
        raise HttpError(400, "phoneE164 is required")
    phone = parsing.parse_possible_phone(message.phoneE164, "phoneE164")
    if _has_image(message):
        if message.media is None or not message.media.data:
            raise HttpError(400, "media.data is required")
    elif message.message and message.message.strip():
        parsing.require_text(message.message, "message", max_length=MAX_MESSAGE_LENGTH)
    return phone


def _has_image(message: BridgeMessage) -> bool:
    """Return `hasMedia`, or infer it from the other fields if it is absent."""
    if message.hasMedia is not None:
        return message.hasMedia
    if message.media is not None and message.media.data:
        return True
    return message.messageType == "image" and not message.message


async def _build_event(message: BridgeMessage) -> TextMessage | ImageReceived | UnsupportedMessage:
    if not _has_image(message):
        text = (message.message or "").strip()
        return TextMessage(text=text) if text else UnsupportedMessage(kind="nothing")
    assert message.media is not None, "_validate_message requires it"
    try:
        return ImageReceived(image=await images.load_bridge_image(message.media))
    except ImageError as error:
        raise HttpError(400, f"media.data {error}") from None


async def _require_within_rate_limit(services: Services, phone: str) -> None:
    wait = await rate_limits.acquire(
        services.database,
        phone,
        limit=services.settings.messenger_rate,
        now=services.clock(),
    )
    if wait is not None:
        raise HttpError(429, "Too many messages", retry_after=wait)


def _render_failure(reply: str) -> Response:
    body = BridgeErrorResponse(error="Internal error", answer=reply, status="error")
    return render_json(500, body)
