"""Messages and delivery statuses received from the channel."""

from typing import Literal, NamedTuple

import msgspec

from tapgate.messenger.model.common import TaggedStruct
from tapgate.messenger.model.events import (
    FormClosed,
    NumberChanged,
    OptionChosen,
    UnsupportedMessage,
)


class TextContent(TaggedStruct, frozen=True, kw_only=True, tag="Words"):
    """Text message. `body` is None if the text may contain a PIN and was therefore withheld."""

    body: str | None


class ImageFile(TaggedStruct, frozen=True, kw_only=True):
    """Image that must be downloaded from the channel's provider."""

    media_id: str
    mime_type: str | None
    sha256: str | None


class InlineImage(TaggedStruct, frozen=True, kw_only=True, tag="PictureInside"):
    """Image contained in its message as a data URI."""

    data: str
    mimetype: str | None = None

    def __repr__(self) -> str:
        return "InlineImage(...)"


#: Content of a received message. Stored as JSON, so the tags must not change.
Content = (
    TextContent
    | OptionChosen
    | FormClosed
    | ImageFile
    | InlineImage
    | NumberChanged
    | UnsupportedMessage
)


class ReceivedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Message from a user, or the channel's notice about a user."""

    message_id: str
    address: str
    user_id: str | None
    sent_at: int  # Unix seconds by the provider's clock; 0 if missing
    content: Content


class DeliveryStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Provider's status report on a sent message."""

    channel_message_id: str
    status: Literal["sent", "delivered", "read", "failed"]
    #: Provider's error code, if the message failed.
    error_code: str | None = None


class Delivery(NamedTuple):
    """Contents of one webhook request from the provider."""

    messages: list[ReceivedMessage]
    statuses: list[DeliveryStatus]


def build_address(phone: str | None, user_id: str | None) -> str | None:
    """Return the phone number as the address, else the user ID with a prefix, else None."""
    if phone is not None:
        return phone
    return None if user_id is None else f"user:{user_id}"
