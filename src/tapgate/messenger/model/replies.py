"""What a person is told."""

from typing import Literal

import msgspec

from tapgate.messenger.model.kinds import Tagged


class Say(Tagged, frozen=True, kw_only=True):
    text: str


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """Something to tap on. The id is what comes back."""

    id: str
    title: str
    description: str = ""


class Offer(Tagged, frozen=True, kw_only=True):
    """Options to choose from, from `start` on where not all of them fit. `more` is the option that
    shows the next ones; `button` opens the list where there is one."""

    text: str
    options: tuple[Option, ...]
    button: str
    more: Option
    start: int = 0


class AskPin(Tagged, frozen=True, kw_only=True):
    """Opens a form of the channel. `operation` is what is entered there for."""

    text: str
    button: str
    form: Literal["pin", "new_pin", "change_pin"]
    operation: str


class PinForm(Tagged, frozen=True, kw_only=True):
    """`AskPin` on its way out: the token is what the form is recognised by when it comes back."""

    text: str
    button: str
    form: Literal["pin", "new_pin", "change_pin"]
    token: str


class File(Tagged, frozen=True, kw_only=True):
    """A document behind a link."""

    link: str
    filename: str
    caption: str


Reply = Say | Offer | AskPin | File


class Template(Tagged, frozen=True, kw_only=True):
    """A message that an internal service sends by its name."""

    name: str
    language: str
    parameters: tuple[str, ...]


#: What can be on its way to a person.
Outgoing = Say | Offer | PinForm | File | Template
