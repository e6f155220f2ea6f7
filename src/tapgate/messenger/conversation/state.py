"""Where a conversation is, and what a step of it leads to."""

from typing import Literal

import msgspec

from tapgate.messenger.model.common import Command, Language
from tapgate.messenger.model.gateway_requests import Card, GatewayRequest, Subscriber
from tapgate.messenger.model.people import Effect, Recipient
from tapgate.messenger.model.replies import OptionList, Reply

Stage = Literal["idle", "collecting", "confirm", "await_pin", "executing"]


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """Kept as JSON between two messages. Never holds a PIN."""

    stage: Stage = "idle"
    command: Command | None = None
    #: The piece of the command's script that is at work: what was asked, or what is looked up.
    piece: str | None = None
    #: What was collected so far, by the name of what was asked for.
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    #: Looked up when a command begins, never older than the conversation.
    subscriber: Subscriber | None = None
    #: The subscriber's, while one of them is chosen.
    cards: tuple[Card, ...] = ()
    #: What a PIN is for; the gateway's `request_id`. In here before the PIN comes in, so that the
    #: same event played again asks for the same thing.
    operation: str | None = None
    #: Money was sent under `operation` and nobody knows whether it arrived.
    uncertain: bool = False
    #: The form of `operation` was filled in, and what came of it was told.
    form_answered: bool = False
    #: What was offered last: for an answer by number, and for "More".
    offer: OptionList | None = None
    #: What a yes to what was said last begins. Never a movement of money.
    suggested: Command | None = None
    #: Grows with each question; options of an older one have expired.
    question: int = 0
    #: Who was paid just now, and could be kept.
    met: Recipient | None = None
    #: The one before ended because nobody answered, with money in progress.
    lapsed: bool = False
    #: What was learnt about the person in this conversation; also an effect of the step in which.
    language: Language | None = None
    phone: str | None = None
    trusted: bool = False

    @property
    def is_awaiting_pin(self) -> bool:
        return self.stage == "await_pin"

    @property
    def has_money_in_progress(self) -> bool:
        return self.command == "send" and self.stage != "idle"


class EngineOutput(msgspec.Struct, frozen=True, kw_only=True):
    conversation: Conversation
    replies: tuple[Reply, ...] = ()
    #: What becomes of it is the next event, at once.
    request: GatewayRequest | None = None
    effects: tuple[Effect, ...] = ()
