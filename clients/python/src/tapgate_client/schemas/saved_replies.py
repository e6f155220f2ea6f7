"""Requests and responses of saved replies."""

from typing import Annotated, Final

import msgspec

from tapgate_client.schemas.fields import IntegerRange, NameRule, TextRule
from tapgate_client.schemas.support import MAX_REPLY_LENGTH
from tapgate_client.schemas.values import Example, Id, Time

MAX_SAVED_REPLIES: Final = 50
#: A label is the text of a button.
MAX_LABEL_LENGTH: Final = 60

_Label = Annotated[str, NameRule(MAX_LABEL_LENGTH), Example("Checking")]
_Text = Annotated[str, TextRule(MAX_REPLY_LENGTH, example="We are checking this.")]
_Position = Annotated[int, IntegerRange(1, MAX_SAVED_REPLIES)]


class SavedReplyTexts(msgspec.Struct, kw_only=True):
    """Text per customer language. A language without a text gets the English one."""

    en: _Text
    fr: Annotated[str, TextRule(MAX_REPLY_LENGTH, example="Nous vérifions cela.")] | None = None


class NewSavedReply(msgspec.Struct, kw_only=True):
    label: _Label
    texts: SavedReplyTexts
    position: _Position | None = None


class SavedReplyUpdate(msgspec.Struct, kw_only=True):
    label: _Label | None = None
    texts: SavedReplyTexts | None = None
    position: _Position | None = None


class SavedReplyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Text that support staff insert into replies. `label` is what they see, `position` from 1."""

    id: Annotated[Id, Example("rpl_0800000000000")]
    label: Annotated[str, Example("Checking")]
    texts: SavedReplyTexts
    position: int
    created_at: Time
    updated_at: Time


class SavedReplies(msgspec.Struct, frozen=True, kw_only=True):
    """All saved replies, in the order in which staff see them."""

    data: list[SavedReplyRecord]
