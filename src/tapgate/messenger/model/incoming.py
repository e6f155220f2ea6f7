"""What the channel delivers."""

from typing import Literal, NamedTuple

import msgspec

from tapgate.messenger.model.common import TaggedStruct


class TextContent(TaggedStruct, frozen=True, kw_only=True, tag="Words"):
    """`body` is None when it may have held a PIN: then it was not kept."""

    body: str | None


class OptionTap(TaggedStruct, frozen=True, kw_only=True, tag="Tap"):
    """A row of a list or a button: its id says what it means, never its title."""

    id: str


class FlowReply(TaggedStruct, frozen=True, kw_only=True):
    """A flow was closed. What was entered in it came another way."""

    flow_token: str | None


class ImageFile(TaggedStruct, frozen=True, kw_only=True):
    """A picture that is still at the channel's provider."""

    media_id: str
    mime_type: str | None
    sha256: str | None


class InlineImage(TaggedStruct, frozen=True, kw_only=True, tag="PictureInside"):
    """A picture that came with its message: a data URI."""

    data: str
    mimetype: str | None = None

    def __repr__(self) -> str:
        return "InlineImage(...)"


class NumberChangeContent(TaggedStruct, frozen=True, kw_only=True, tag="ChangedNumber"):
    """The person behind this number is no longer certain."""


class UnsupportedContent(TaggedStruct, frozen=True, kw_only=True, tag="Other"):
    kind: str


Content = (
    TextContent
    | OptionTap
    | FlowReply
    | ImageFile
    | InlineImage
    | NumberChangeContent
    | UnsupportedContent
)


class ReceivedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a delivery."""

    message_id: str
    address: str
    user_id: str | None
    sent_at: int  # unix seconds, by the provider's clock
    content: Content


class DeliveryStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The provider's report about a message that was sent."""

    channel_message_id: str
    status: Literal["sent", "delivered", "read", "failed"]
    #: Why it failed; the provider's number.
    error_code: str | None = None


class Delivery(NamedTuple):
    """One request of the provider."""

    messages: list[ReceivedMessage]
    statuses: list[DeliveryStatus]


def build_address(phone: str | None, user_id: str | None) -> str | None:
    """Whom a conversation is with: a phone number, or somebody who does not show theirs."""
    if phone is not None:
        return phone
    return None if user_id is None else f"user:{user_id}"
