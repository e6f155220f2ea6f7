"""What a command's script is made of, in the order in which it happens.

The first piece that is open is the one at work. It is open while it is needed and nothing is known
under its name; so where a conversation stands follows from what is known, and going back means
forgetting something.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from tapgate.images import EncodedImage
from tapgate.messenger.conversation.scene import Choice, Scene
from tapgate.messenger.model.calls import Call
from tapgate.messenger.model.events import Refused
from tapgate.messenger.model.kinds import Command, Secret
from tapgate.messenger.understanding.secrets_in_text import may_hold_a_pin, names_a_secret

#: Where it goes after an answer of the gateway: on; back to what is no longer known; nowhere.
Go = Literal["on", "back", "end"]
#: What becomes of somebody's answer: facts, a call for which it is used at once and not kept, the
#: end of the command. None: it was not understood.
Taken = Mapping[str, str] | Call | Literal["end"] | None


#: What a PIN looks like.
PIN: Final = re.compile(r"[0-9]{4}")


class Pins(Secret, frozen=True, kw_only=True):
    """What was entered: `new_pin` only where one is chosen."""

    pin: str
    new_pin: str


def always(scene: Scene) -> bool:
    return True


def on(scene: Scene, result: Any) -> Go:
    return "on"


def as_usual(scene: Scene, refused: Refused) -> Go | None:
    """None: the general sentence for the code, and the end of the command."""
    return None


def never(text: str) -> bool:
    return False


def is_pin_no_serial(text: str) -> bool:
    """Where a card's serial is asked for: one word with a letter in it is one, not a PIN, unless it
    says that it is."""
    is_serial = len(text.split()) == 1 and any(sign.isalpha() for sign in text)
    return may_hold_a_pin(text) and (not is_serial or names_a_secret(text))


def no_choices(scene: Scene) -> list[Choice]:
    return []


@dataclass(frozen=True, kw_only=True)
class Piece:
    name: str
    #: The key of what is said when words do not answer it.
    unread: str = "unread.choice"
    #: The key of what is said when it may have been done, but no answer came.
    uncertain: str = "unreachable"
    needed: Callable[[Scene], bool] = always
    #: For pieces that call the gateway.
    told: Callable[[Scene, Any], Go] = on
    refused: Callable[[Scene, Refused], Go | None] = as_usual

    def is_open(self, scene: Scene) -> bool:
        return self.name not in scene.facts and self.needed(scene)


@dataclass(frozen=True, kw_only=True)
class Fetch(Piece):
    """Calls the gateway with what is known."""

    call: Callable[[Scene], Call]


@dataclass(frozen=True, kw_only=True)
class Ask(Piece):
    """Asks something. `read` takes words, `chose` an option's value, `seen` a picture."""

    prompt: Callable[[Scene], str]
    choices: Callable[[Scene], list[Choice]] = no_choices
    #: Known without asking, for instance because there is only one to choose from.
    given: Callable[[Scene], str | None] = lambda scene: None
    read: Callable[[Scene, str], Taken] | None = None
    chose: Callable[[Scene, str], Taken] | None = None
    seen: Callable[[Scene, EncodedImage], Taken] | None = None
    #: Whether words are a PIN that nobody asked for, rather than an answer.
    sounds_like_pin: Callable[[str], bool] = may_hold_a_pin


@dataclass(frozen=True, kw_only=True)
class Confirm(Piece):
    """Shows what is about to happen. Only a clear yes, given to this very question, goes on."""

    prompt: Callable[[Scene], str]
    unread: str = "unread.confirm"


@dataclass(frozen=True, kw_only=True)
class Pin(Piece):
    """Asks for a PIN and calls the gateway with it."""

    prompt: Callable[[Scene], str]
    call: Callable[[Scene, Pins], Call]
    form: Literal["pin", "new_pin", "change_pin"] = "pin"
    unread: str = "unread.pin"
    #: Whether no answer may mean that money has moved.
    moves_money: bool = False


@dataclass(frozen=True, kw_only=True)
class Script:
    """All of a command. `begin` takes over what was said along with it."""

    command: Command
    pieces: tuple[Piece, ...]
    begin: Callable[[Scene, str], None] = lambda scene, text: None
    #: The key of what is said when it is given up.
    left: Callable[[Scene], str] = lambda scene: "cancelled"

    def piece(self, name: str | None) -> Piece | None:
        return next((piece for piece in self.pieces if piece.name == name), None)

    def needs_pin(self, scene: Scene) -> bool:
        return any(isinstance(piece, Pin) and piece.needed(scene) for piece in self.pieces)

    def first_open(self, scene: Scene) -> Piece | None:
        return next((piece for piece in self.pieces if piece.is_open(scene)), None)
