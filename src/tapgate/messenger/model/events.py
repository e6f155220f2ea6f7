"""What the conversation engine is told."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tapgate.images import EncodedImage
from tapgate.messenger.model.kinds import Command, Language, Secret, Tagged


class Meaning(msgspec.Struct, frozen=True, kw_only=True):
    """What free text seems to ask for: a command, or a few to choose from, or nothing known."""

    command: Command | None = None
    maybe: tuple[Command, ...] = ()
    #: Whether the command was said in so many words: then it also wins over an open question.
    exact: bool = False
    #: The language of the words that were recognised.
    language: Language | None = None


class Said(Secret, frozen=True, kw_only=True):
    """Free text, which may be a PIN. None: withheld, see `Words`.

    `late`: sent before something that was handled already.
    """

    text: str | None
    meaning: Meaning = Meaning()
    late: bool = False


class Chose(Tagged, frozen=True, kw_only=True):
    id: str
    late: bool = False


class Entered(Secret, frozen=True, kw_only=True):
    """The fields of a PIN form."""

    operation: str
    pin: str | None = None
    new_pin: str | None = None


class FormClosed(Tagged, frozen=True, kw_only=True):
    pass


class Pictured(msgspec.Struct, frozen=True, kw_only=True):
    """A picture that was checked and made anew."""

    picture: EncodedImage


class PictureRefused(Tagged, frozen=True, kw_only=True):
    """`reason` is what comes after "The picture" in a sentence, in English."""

    reason: str


class NumberChanged(Tagged, frozen=True, kw_only=True):
    pass


class NotUnderstood(Tagged, frozen=True, kw_only=True):
    """A sticker, a place, a voice message."""

    kind: str


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What the gateway answered to the engine's call; its type is named at the call."""

    result: Any


class Refused(Tagged, frozen=True, kw_only=True):
    """The gateway said no."""

    code: str
    message: str | None = None
    details: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Unreachable(Tagged, frozen=True, kw_only=True):
    """No answer. With `uncertain` it may have been done all the same."""

    uncertain: bool


Event = (
    Said
    | Chose
    | Entered
    | FormClosed
    | Pictured
    | PictureRefused
    | NumberChanged
    | NotUnderstood
    | Answered
    | Refused
    | Unreachable
)
