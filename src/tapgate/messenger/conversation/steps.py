"""Command scripts and their steps.

A script's first open step is the next to run. A step is open while it is needed and no fact is
stored under its name. The position in a script therefore follows from the facts, and going back
means clearing a fact.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from tapgate.core.images import EncodedImage
from tapgate.messenger.conversation.turn import Choice, Turn
from tapgate.messenger.gateway_requests import GatewayRequest
from tapgate.messenger.model import Command, FormKind, RequestRejected, SecretStruct
from tapgate.messenger.understanding.secret_detection import may_contain_pin, mentions_secret

#: How a script continues after a gateway response: with the next step ("on"), with the same step or
#: an earlier one whose fact was cleared ("back"), or not at all ("end").
Next = Literal["on", "back", "end"]
#: Result of parsing a user's answer: facts to store, a gateway request that uses the answer
#: without storing it, or the end of the command. None if the answer was not understood.
ParsedAnswer = Mapping[str, str] | GatewayRequest | Literal["end"] | None


PIN_PATTERN: Final = re.compile(r"[0-9]{4}")
CODE_PATTERN: Final = re.compile(r"[0-9]{6}")
#: Fact with the ID of the record below which the button that started the command was tapped.
SUBJECT: Final = "subject"


class PinInput(SecretStruct, frozen=True, kw_only=True):
    """PIN entered by the user. `new_pin` differs from `pin` only when the PIN is changed.

    `code` is the one-time code that a PIN reset requires.
    """

    pin: str
    new_pin: str
    code: str | None = None


def looks_like_pin_not_serial(text: str) -> bool:
    """Return whether an answer to a card serial question looks like a PIN instead.

    A single word with a letter is a serial, unless the text mentions a secret.
    """
    is_serial = len(text.split()) == 1 and any(char.isalpha() for char in text)
    return may_contain_pin(text) and (not is_serial or mentions_secret(text))


@dataclass(frozen=True, kw_only=True)
class Step:
    """Base class of script steps."""

    name: str
    #: Text key for the reply to a text that does not answer the step.
    not_understood_key: str = "not_understood.choice"
    #: Text key for the reply when it is unknown whether the request succeeded.
    uncertain_key: str = "unreachable"
    is_needed: Callable[[Turn], bool] | None = None
    #: Whether the step is only for a person whose phone number is unknown.
    needs_unknown_phone: bool = False
    #: `on_success` and `on_rejection` handle the response in steps that send a gateway request.
    #: If `on_rejection` returns None, the message for the error code is sent and the command ends.
    on_success: Callable[[Turn, Any], Next] = lambda turn, result: "on"
    on_rejection: Callable[[Turn, RequestRejected], Next | None] = lambda turn, error: None
    #: How the script continues if the gateway is unreachable. None offers to retry.
    on_unreachable: Callable[[Turn], Next] | None = None

    def is_open(self, turn: Turn) -> bool:
        return self.name not in turn.conversation.facts and self.applies(turn)

    def applies(self, turn: Turn) -> bool:
        if self.needs_unknown_phone and turn.person.phone is not None:
            return False
        return self.is_needed is None or self.is_needed(turn)


@dataclass(frozen=True, kw_only=True)
class RequestStep(Step):
    """Step that sends a gateway request built from the stored facts."""

    build_request: Callable[[Turn], GatewayRequest]


@dataclass(frozen=True, kw_only=True)
class AskStep(Step):
    """Step that asks a question.

    The step accepts free text only with `parse_text`, and images only with `parse_image`. Without
    `parse_option`, the value of the chosen option is the answer.
    """

    prompt: Callable[[Turn], str]
    choices: Callable[[Turn], list[Choice]] = lambda turn: []
    #: Returns an answer known without asking, for example the only choice.
    infer_answer: Callable[[Turn], str | None] = lambda turn: None
    parse_text: Callable[[Turn, str], ParsedAnswer] | None = None
    parse_option: Callable[[Turn, str], ParsedAnswer] | None = None
    parse_image: Callable[[Turn, EncodedImage], GatewayRequest] | None = None
    #: What the question asks for: a shared contact or place can answer it.
    asks_for: Literal["person", "place"] | None = None
    #: Whether `parse_text` also gets small talk. Command keywords still start the command.
    takes_any_text: bool = False
    #: Returns whether a text looks like an unrequested PIN rather than an answer.
    looks_like_pin: Callable[[str], bool] = may_contain_pin


@dataclass(frozen=True, kw_only=True)
class ConfirmStep(Step):
    """Step that asks for confirmation. The script continues only after an explicit yes.

    With `accepts_no`, a no is an answer too, and the following steps decide by the fact.
    """

    accepts_no: bool = False
    prompt: Callable[[Turn], str]
    not_understood_key: str = "not_understood.confirm"


@dataclass(frozen=True, kw_only=True)
class PinStep(Step):
    """Step that asks for a PIN and sends a gateway request with it."""

    prompt: Callable[[Turn], str]
    build_request: Callable[[Turn, PinInput], GatewayRequest]
    form: FormKind = "pin"
    not_understood_key: str = "not_understood.pin"
    #: Whether a PIN as text is entered twice. A form has a field for the repetition.
    asks_twice: bool = False
    #: Whether money may have moved when the outcome is unknown.
    moves_money: bool = False


@dataclass(frozen=True, kw_only=True)
class Script:
    """Command definition. `on_begin` takes facts from the text that started it, or replies."""

    command: Command
    steps: tuple[Step, ...]
    on_begin: Callable[[Turn, str], object] = lambda turn, text: None
    #: Returns the text key for the reply when the command is canceled.
    get_cancel_key: Callable[[Turn], str] = lambda turn: "canceled"
    #: Applies a correction of earlier answers. Returns False if the text is none.
    correct: Callable[[Turn, str], bool] | None = None
    #: Runs before the command is canceled by the person, not if another command replaces it.
    on_cancel: Callable[[Turn], object] = lambda turn: None

    def get_step(self, name: str | None) -> Step | None:
        return next((step for step in self.steps if step.name == name), None)

    def needs_pin(self, turn: Turn) -> bool:
        return any(isinstance(step, PinStep) and step.applies(turn) for step in self.steps)

    def get_first_open_step(self, turn: Turn) -> Step | None:
        return next((step for step in self.steps if step.is_open(turn)), None)
