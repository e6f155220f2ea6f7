"""Replies and other outgoing messages."""

from typing import Literal

import msgspec

from tapgate.messenger.model.common import TaggedStruct


class TextReply(TaggedStruct, frozen=True, kw_only=True, tag="Say"):
    text: str


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """Option that the user can tap. The channel sends `id` back when it is tapped."""

    id: str
    title: str
    description: str = ""


class OptionList(TaggedStruct, frozen=True, kw_only=True, tag="Offer"):
    """Options to choose from.

    If not all options fit, the list begins at `start`, and `more` is the option that shows the next
    ones. `button` is the label of the button that opens the list.
    """

    text: str
    options: tuple[Option, ...]
    button: str
    more: Option
    start: int = 0


class PinRequest(TaggedStruct, frozen=True, kw_only=True):
    """Request to enter a PIN in the channel's form. The PIN authorizes `operation`."""

    text: str
    button: str
    form: Literal["pin", "new_pin", "change_pin"]
    operation: str


class PinForm(TaggedStruct, frozen=True, kw_only=True):
    """`PinRequest` ready to send. `token` identifies the form when it is submitted."""

    text: str
    button: str
    form: Literal["pin", "new_pin", "change_pin"]
    token: str


class DocumentReply(TaggedStruct, frozen=True, kw_only=True, tag="File"):
    """Document that the channel downloads from `link`."""

    link: str
    filename: str
    caption: str


Reply = TextReply | OptionList | PinRequest | DocumentReply


class Template(TaggedStruct, frozen=True, kw_only=True):
    """Template message, rendered by the provider from `name`, `language` and `parameters`."""

    name: str
    language: str
    parameters: tuple[str, ...]


#: Message types that the outbox can send.
OutgoingMessage = TextReply | OptionList | PinForm | DocumentReply | Template
