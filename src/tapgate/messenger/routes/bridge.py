"""Compatibility endpoint for bridges and local tests: a message in, a plain-text reply out."""

from typing import Annotated, ClassVar, Final

import msgspec
import structlog

from tapgate.core.images import ImageError
from tapgate.http.endpoint import MEBIBYTE, Endpoints, Reply
from tapgate.http.responses import encode_json
from tapgate.messenger import chat_rate_limits, images, runner
from tapgate.messenger.channel.delivery_parser import IGNORED_TYPES
from tapgate.messenger.channel.render import render_plain_text
from tapgate.messenger.conversation_store import LeaseLostError
from tapgate.messenger.model import (
    MAX_TEXT_LENGTH,
    ImageReceived,
    SecretStruct,
    TextMessage,
    UnsupportedMessage,
)
from tapgate.messenger.routes.access import BRIDGE
from tapgate.messenger.services import Services
from tapgate.messenger.web import (
    ErrorStatus,
    RequestContext,
    SuccessStatus,
    invalid,
    parse_phone,
    require_text,
)
from tapgate.runtime import logs
from tapgate_client.errors import ApiError, Code

_MAX_SENDER_LENGTH: Final = 255
#: In both languages, because the person's language may be unavailable too.
_UNAVAILABLE_TEXT: Final = (
    "Tapgate is unavailable right now. Please try again in a few minutes. If you were sending"
    " money, check your history first.\n\n"
    "Tapgate est momentanément indisponible. Veuillez réessayer dans quelques minutes. Si vous"
    " étiez en train d'envoyer de l'argent, consultez d'abord votre historique."
)

_log = structlog.get_logger()

endpoints = Endpoints("Bridge")

DataUri = Annotated[
    str,
    msgspec.Meta(description="Starts with `data:image/jpeg;base64,` or `data:image/png;base64,`"),
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


@endpoints.post(
    "/api/v1/external/messaging",
    access=BRIDGE,
    body_limit=8 * MEBIBYTE,  # may contain an image
    error_types={500: BridgeErrorResponse},
)
async def receive_bridge_message(
    request: RequestContext, body: BridgeMessage
) -> Reply[BridgeResponse]:
    """Process a message from a bridge and return the reply.

    Each phone number has one conversation, shared by this endpoint and the webhook. `answer` is
    plain text, with numbered options instead of buttons and lists. If `hasMedia` is true, `media`
    contains a JPEG or PNG image, and `message` is ignored. Reactions, edits and deletions get an
    empty `answer`.
    """
    phone = _validate_message(body)
    if body.messageType in IGNORED_TYPES:
        return Reply(BridgeResponse(answer="", status="success"))
    try:
        await _require_within_rate_limit(request.services, phone)
        result = await runner.handle_bridge_message(
            request.services, phone, await _build_event(body)
        )
    except (ApiError, LeaseLostError) as error:
        if isinstance(error, ApiError) and error.status < 500:
            raise
        # The database or the lease is unavailable, too many images are pending, or the lease was
        # lost.
        _log.warning(
            "bridge.failed", request_id=request.request_id, failure=logs.describe_exception(error)
        )
        return _build_failure(_UNAVAILABLE_TEXT)
    reply = render_plain_text(result.replies)
    if result.has_failed:
        return _build_failure(reply or _UNAVAILABLE_TEXT)
    return Reply(BridgeResponse(answer=reply, status="success"))


def _validate_message(message: BridgeMessage) -> str:
    """Validate everything except the image itself, and return the phone number."""
    if message.event != "message":
        raise invalid("event must be message" if message.event else "event is required")
    require_text(message.sender, "from", max_length=_MAX_SENDER_LENGTH)
    if not message.phoneE164:
        raise invalid("phoneE164 is required")
    phone = parse_phone(message.phoneE164, "phoneE164")
    if _has_image(message):
        if message.media is None or not message.media.data:
            raise invalid("media.data is required")
    elif message.message and message.message.strip():
        require_text(message.message, "message", max_length=MAX_TEXT_LENGTH)
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
        return ImageReceived(
            image=await images.load_inline_image(message.media.data, message.media.mimetype)
        )
    except ImageError as error:
        raise invalid(f"media.data {error}") from None


async def _require_within_rate_limit(services: Services, phone: str) -> None:
    wait = await chat_rate_limits.acquire(
        services.database, phone, limit=services.settings.messenger_rate, now=services.clock()
    )
    if wait is not None:
        raise ApiError(Code.RATE_LIMITED, "Too many messages", headers={"Retry-After": str(wait)})


def _build_failure(reply: str) -> Reply[BridgeResponse]:
    body = BridgeErrorResponse(error="Internal error", answer=reply, status="error")
    return Reply(encode_json(body), status=500)
