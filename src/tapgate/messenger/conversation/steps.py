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
from tapgate.messenger.conversation.turn import Choice, Turn
from tapgate.messenger.model.common import Command, SecretStruct
from tapgate.messenger.model.events import RequestRejected
from tapgate.messenger.model.gateway_requests import GatewayRequest
from tapgate.messenger.understanding.secret_detection import may_contain_pin, mentions_secret

#: Where it goes after an answer of the gateway: on; back to what is no longer known; nowhere.
Next = Literal["on", "back", "end"]
#: What becomes of somebody's answer: facts, a call for which it is used at once and not kept, the
#: end of the command. None: it was not understood.
Claimed = Mapping[str, str] | GatewayRequest | Literal["end"] | None


#: What a PIN looks like.
PIN_PATTERN: Final = re.compile(r"[0-9]{4}")


class PinInput(SecretStruct, frozen=True, kw_only=True):
    """What was entered: `new_pin` only where one is chosen."""

    pin: str
    new_pin: str


def always(scene: Turn) -> bool:
    return True


def proceed(scene: Turn, result: Any) -> Next:
    return "on"


def use_default_message(scene: Turn, refused: RequestRejected) -> Next | None:
    """None: the general sentence for the code, and the end of the command."""
    return None


def never(text: str) -> bool:
    return False


def is_pin_not_serial(text: str) -> bool:
    """Where a card's serial is asked for: one word with a letter in it is one, not a PIN, unless it
    says that it is."""
    is_serial = len(text.split()) == 1 and any(sign.isalpha() for sign in text)
    return may_contain_pin(text) and (not is_serial or mentions_secret(text))


def no_choices(scene: Turn) -> list[Choice]:
    return []


@dataclass(frozen=True, kw_only=True)
class Step:
    name: str
    #: The key of what is said when words do not answer it.
    not_understood_key: str = "unread.choice"
    #: The key of what is said when it may have been done, but no answer came.
    uncertain_key: str = "unreachable"
    is_needed: Callable[[Turn], bool] = always
    #: For pieces that call the gateway.
    on_success: Callable[[Turn, Any], Next] = proceed
    on_rejection: Callable[[Turn, RequestRejected], Next | None] = use_default_message

    def is_open(self, scene: Turn) -> bool:
        return self.name not in scene.facts and self.is_needed(scene)


@dataclass(frozen=True, kw_only=True)
class RequestStep(Step):
    """Calls the gateway with what is known."""

    build_request: Callable[[Turn], GatewayRequest]


@dataclass(frozen=True, kw_only=True)
class AskStep(Step):
    """Asks something. `read` takes words, `chose` an option's value, `seen` a picture."""

    prompt: Callable[[Turn], str]
    choices: Callable[[Turn], list[Choice]] = no_choices
    #: Known without asking, for instance because there is only one to choose from.
    infer_answer: Callable[[Turn], str | None] = lambda scene: None
    parse_text: Callable[[Turn, str], Claimed] | None = None
    parse_option: Callable[[Turn, str], Claimed] | None = None
    parse_image: Callable[[Turn, EncodedImage], Claimed] | None = None
    #: Whether words are a PIN that nobody asked for, rather than an answer.
    looks_like_pin: Callable[[str], bool] = may_contain_pin


@dataclass(frozen=True, kw_only=True)
class ConfirmStep(Step):
    """Shows what is about to happen. Only a clear yes, given to this very question, goes on."""

    prompt: Callable[[Turn], str]
    not_understood_key: str = "unread.confirm"


@dataclass(frozen=True, kw_only=True)
class PinStep(Step):
    """Asks for a PIN and calls the gateway with it."""

    prompt: Callable[[Turn], str]
    build_request: Callable[[Turn, PinInput], GatewayRequest]
    form: Literal["pin", "new_pin", "change_pin"] = "pin"
    not_understood_key: str = "unread.pin"
    #: Whether no answer may mean that money has moved.
    moves_money: bool = False


@dataclass(frozen=True, kw_only=True)
class Script:
    """All of a command. `begin` takes over what was said along with it."""

    command: Command
    steps: tuple[Step, ...]
    on_begin: Callable[[Turn, str], None] = lambda scene, text: None
    #: The key of what is said when it is given up.
    get_cancel_key: Callable[[Turn], str] = lambda scene: "cancelled"

    def get_step(self, name: str | None) -> Step | None:
        return next((piece for piece in self.steps if piece.name == name), None)

    def needs_pin(self, scene: Turn) -> bool:
        return any(isinstance(piece, PinStep) and piece.is_needed(scene) for piece in self.steps)

    def get_first_open_step(self, scene: Turn) -> Step | None:
        return next((piece for piece in self.steps if piece.is_open(scene)), None)
