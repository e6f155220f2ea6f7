"""Events that the conversation engine processes."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tapgate.images import EncodedImage
from tapgate.messenger.model.common import Command, Language, SecretStruct, TaggedStruct


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """Intent of a free-text message: a command, a few candidates, or unknown."""

    command: Command | None = None
    candidates: tuple[Command, ...] = ()
    #: Whether the text is a keyword of the command. Keywords take precedence over an open question.
    is_exact: bool = False
    #: Language of the recognized words.
    language: Language | None = None


class TextMessage(SecretStruct, frozen=True, kw_only=True):
    """Free text, which may be a PIN.

    `text` is None if it was withheld and this process does not have it (see `inbox.py`). `is_late`
    is True if the message was sent before another message that was already processed.
    """

    text: str | None
    intent: Intent = Intent()
    is_late: bool = False


class OptionChosen(TaggedStruct, frozen=True, kw_only=True, tag="Tap", omit_defaults=True):
    """Tap on a list row or a button."""

    id: str
    is_late: bool = False


class FormSubmitted(SecretStruct, frozen=True, kw_only=True):
    """Fields of a submitted PIN form."""

    operation: str
    pin: str | None = None
    new_pin: str | None = None


class FormClosed(TaggedStruct, frozen=True, kw_only=True, tag="FlowReply"):
    """Notice that a form was closed. Its input arrives separately, at the data endpoint."""


class ImageReceived(msgspec.Struct, frozen=True, kw_only=True):
    """Image that was validated and re-encoded."""

    image: EncodedImage


class ImageRejected(msgspec.Struct, frozen=True, kw_only=True):
    """Image that was rejected. `reason` completes an English sentence that starts "The picture"."""

    reason: str


class NumberChanged(TaggedStruct, frozen=True, kw_only=True, tag="ChangedNumber"):
    """Notice that the user's number changed. The old number may now belong to another person."""


class UnsupportedMessage(TaggedStruct, frozen=True, kw_only=True, tag="Other"):
    """Message of an unsupported kind, such as a sticker, a location or a voice message."""

    kind: str


class RequestSucceeded(msgspec.Struct, frozen=True, kw_only=True):
    """Successful gateway request. `result` is what `GatewayRequest.perform` returned."""

    result: Any


class RequestRejected(msgspec.Struct, frozen=True, kw_only=True):
    """Gateway request that was declined or rejected."""

    code: str
    message: str | None = None
    details: Mapping[str, Any] = msgspec.field(default_factory=dict)


class GatewayUnreachable(msgspec.Struct, frozen=True, kw_only=True):
    """No usable response from the gateway. If `uncertain`, the request may have been executed."""

    uncertain: bool


#: Outcome of a gateway request.
RequestOutcome = RequestSucceeded | RequestRejected | GatewayUnreachable

Event = (
    TextMessage
    | OptionChosen
    | FormSubmitted
    | FormClosed
    | ImageReceived
    | ImageRejected
    | NumberChanged
    | UnsupportedMessage
    | RequestOutcome
)
