"""The compatibility endpoint: a message in, its answer as text out. For bridges and local tests."""

from typing import Annotated, ClassVar, Final

import msgspec
import structlog

from tapgate.errors import ApiError
from tapgate.images import ImageError
from tapgate.messenger import pictures, rates, runner
from tapgate.messenger.channel.incoming import UNANSWERED_TYPES
from tapgate.messenger.channel.plain_text import as_text
from tapgate.messenger.conversations import LeaseLostError
from tapgate.messenger.model.events import NotUnderstood, Pictured, Said
from tapgate.messenger.model.kinds import Secret
from tapgate.messenger.routes import reading
from tapgate.messenger.routes.route import Failure, Refusal, Request, Success, json_answer
from tapgate.messenger.services import Services
from tapgate.service import logs
from tapgate.service.http import Response

#: What the channel itself lets a person write at once.
LONGEST_MESSAGE: Final = 4096
_LONGEST_NAME: Final = 255
_KIND_SENTENCE: Final = (
    "Sorry, we cannot answer at the moment. Nothing was lost; please try again in a minute."
)

_log = structlog.get_logger()

Base64 = Annotated[
    str,
    msgspec.Meta(
        description="Begins with `data:image/jpeg;base64,` or `data:image/png;base64,`",
    ),
]


class Media(Secret, frozen=True, kw_only=True):
    data: Base64 | None = None
    mimetype: str | None = None
    filename: str | None = None
    size: int | float | None = None


class BridgeMessage(Secret, frozen=True, kw_only=True):
    EXAMPLE: ClassVar = {
        "event": "message",
        "from": "23276123456",
        "phoneE164": "+23276123456",
        "message": "balance",
        "messageType": "text",
        "hasMedia": False,
    }

    event: Annotated[str, msgspec.Meta(description="Always `message`")]
    sender: Annotated[str, msgspec.Meta(description="The sender's identifier")] = msgspec.field(
        name="from"
    )
    phoneE164: Annotated[str, msgspec.Meta(description="E.164")]  # noqa: N815 - its name outside
    message: str | None = None
    messageType: str | None = None  # noqa: N815
    hasMedia: bool | None = None  # noqa: N815
    media: Media | None = None


class BridgeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    EXAMPLE: ClassVar = {"answer": "Your balance is 1,250.00 SLE.", "status": "success"}

    answer: str
    status: Success


class BridgeFailure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`answer` is there where there is something kind to pass on to the person."""

    error: str
    answer: str | None = None
    status: Failure


async def receive_bridge_message(request: Request) -> Response:
    """Take a message from a bridge and answer it.

    One conversation per phone number, over this endpoint and the webhook. `answer` is plain text:
    what would be buttons or a list elsewhere is numbered. With `hasMedia` the picture is the
    message; JPEG and PNG only. A reaction, an edit or a deletion gets an empty answer.
    """
    message = reading.read(BridgeMessage, request.body)
    phone = _checked(message)
    if message.messageType in UNANSWERED_TYPES:
        return json_answer(200, BridgeAnswer(answer="", status="success"))
    try:
        await _require_rate(request.services, phone)
        talk = await runner.converse(request.services, phone, await _event(message))
    except (ApiError, LeaseLostError) as error:
        # The database is away, or too much is waiting. Nothing was done.
        _log.warning(
            "bridge.failed", request_id=request.request_id, failure=logs.describe_exception(error)
        )
        return _failed(_KIND_SENTENCE)
    answer = as_text(talk.replies)
    if talk.failed:
        return _failed(answer or _KIND_SENTENCE)
    return json_answer(200, BridgeAnswer(answer=answer, status="success"))


def _checked(message: BridgeMessage) -> str:
    """The phone number, once everything that takes no effort to look at is right."""
    if message.event != "message":
        raise Refusal(400, "event must be message" if message.event else "event is required")
    reading.text(message.sender, "from", most=_LONGEST_NAME)
    if not message.phoneE164:
        raise Refusal(400, "phoneE164 is required")
    phone = reading.possible_phone(message.phoneE164, "phoneE164")
    if _is_picture(message):
        if message.media is None or not message.media.data:
            raise Refusal(400, "media.data is required")
    elif message.message and message.message.strip():
        reading.text(message.message, "message", most=LONGEST_MESSAGE)
    return phone


def _is_picture(message: BridgeMessage) -> bool:
    """Told by `hasMedia`; where that is left out, by what is there."""
    if message.hasMedia is not None:
        return message.hasMedia
    if message.media is not None and message.media.data:
        return True
    return message.messageType == "image" and not message.message


async def _event(message: BridgeMessage) -> Said | Pictured | NotUnderstood:
    if not _is_picture(message):
        words = (message.message or "").strip()
        return Said(text=words) if words else NotUnderstood(kind="nothing")
    assert message.media is not None, "checked before"
    try:
        return Pictured(picture=await pictures.from_bridge(message.media))
    except ImageError as error:
        raise Refusal(400, f"media.data {error}") from None


async def _require_rate(services: Services, phone: str) -> None:
    wait = await rates.take(
        services.database,
        phone,
        most=services.settings.messenger_rate,
        now=services.clock(),
    )
    if wait is not None:
        raise Refusal(429, "Too many messages", retry_after=wait)


def _failed(answer: str) -> Response:
    body = BridgeFailure(error="Internal error", answer=answer, status="error")
    return json_answer(500, body)
