"""What the conversation engine is told."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tapgate.images import EncodedImage
from tapgate.messenger.model.common import Command, Language, SecretStruct, TaggedStruct


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """What free text seems to ask for: a command, or a few to choose from, or nothing known."""

    command: Command | None = None
    candidates: tuple[Command, ...] = ()
    #: Whether the command was said in so many words: then it also wins over an open question.
    is_exact: bool = False
    #: The language of the words that were recognised.
    language: Language | None = None


class TextMessage(SecretStruct, frozen=True, kw_only=True):
    """Free text, which may be a PIN. None: withheld, see `Words`.

    `late`: sent before something that was handled already.
    """

    text: str | None
    intent: Intent = Intent()
    is_late: bool = False


class OptionChosen(TaggedStruct, frozen=True, kw_only=True):
    id: str
    is_late: bool = False


class FormSubmitted(SecretStruct, frozen=True, kw_only=True):
    """The fields of a PIN form."""

    operation: str
    pin: str | None = None
    new_pin: str | None = None


class FormClosed(TaggedStruct, frozen=True, kw_only=True):
    pass


class ImageReceived(msgspec.Struct, frozen=True, kw_only=True):
    """A picture that was checked and made anew."""

    image: EncodedImage


class ImageRejected(TaggedStruct, frozen=True, kw_only=True):
    """`reason` is what comes after "The picture" in a sentence, in English."""

    reason: str


class NumberChanged(TaggedStruct, frozen=True, kw_only=True):
    pass


class UnsupportedMessage(TaggedStruct, frozen=True, kw_only=True):
    """A sticker, a place, a voice message."""

    kind: str


class RequestSucceeded(msgspec.Struct, frozen=True, kw_only=True):
    """What the gateway answered to the engine's call; its type is named at the call."""

    result: Any


class RequestRejected(TaggedStruct, frozen=True, kw_only=True):
    """The gateway said no."""

    code: str
    message: str | None = None
    details: Mapping[str, Any] = msgspec.field(default_factory=dict)


class GatewayUnreachable(TaggedStruct, frozen=True, kw_only=True):
    """No answer. With `uncertain` it may have been done all the same."""

    uncertain: bool


Event = (
    TextMessage
    | OptionChosen
    | FormSubmitted
    | FormClosed
    | ImageReceived
    | ImageRejected
    | NumberChanged
    | UnsupportedMessage
    | RequestSucceeded
    | RequestRejected
    | GatewayUnreachable
)
