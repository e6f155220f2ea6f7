"""What a person is told."""

from typing import Literal

import msgspec

from tapgate.messenger.model.common import TaggedStruct


class TextReply(TaggedStruct, frozen=True, kw_only=True, tag="Say"):
    text: str


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """Something to tap on. The id is what comes back."""

    id: str
    title: str
    description: str = ""


class OptionList(TaggedStruct, frozen=True, kw_only=True, tag="Offer"):
    """Options to choose from, from `start` on where not all of them fit. `more` is the option that
    shows the next ones; `button` opens the list where there is one."""

    text: str
    options: tuple[Option, ...]
    button: str
    more: Option
    start: int = 0


class PinRequest(TaggedStruct, frozen=True, kw_only=True):
    """Opens a form of the channel. `operation` is what is entered there for."""

    text: str
    button: str
    form: Literal["pin", "new_pin", "change_pin"]
    operation: str


class PinForm(TaggedStruct, frozen=True, kw_only=True):
    """`AskPin` on its way out: the token is what the form is recognised by when it comes back."""

    text: str
    button: str
    form: Literal["pin", "new_pin", "change_pin"]
    token: str


class DocumentReply(TaggedStruct, frozen=True, kw_only=True, tag="File"):
    """A document behind a link."""

    link: str
    filename: str
    caption: str


Reply = TextReply | OptionList | PinRequest | DocumentReply


class Template(TaggedStruct, frozen=True, kw_only=True):
    """A message that an internal service sends by its name."""

    name: str
    language: str
    parameters: tuple[str, ...]


#: What can be on its way to a person.
OutgoingMessage = TextReply | OptionList | PinForm | DocumentReply | Template
