"""Where a conversation is, and what a step of it leads to."""

from typing import Literal

import msgspec

from tapgate.messenger.model.calls import Call, Subscriber
from tapgate.messenger.model.kinds import Command
from tapgate.messenger.model.people import Effect
from tapgate.messenger.model.replies import Offer, Reply

Stage = Literal["idle", "collecting", "confirm", "await_pin", "executing"]


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """Kept as JSON between two messages. Never holds a PIN."""

    stage: Stage = "idle"
    command: Command | None = None
    #: What was collected so far, by the name of what was asked for.
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    #: Looked up when a command begins, never older than the conversation.
    subscriber: Subscriber | None = None
    #: What a PIN or a yes is for; the gateway's `request_id`.
    operation: str | None = None
    #: What was offered last: for an answer by number, and for "More".
    offer: Offer | None = None
    #: Grows with each question; options of an older one have expired.
    question: int = 0
    #: The one before ended because nobody answered, with money in progress.
    lapsed: bool = False


class Step(msgspec.Struct, frozen=True, kw_only=True):
    conversation: Conversation
    replies: tuple[Reply, ...] = ()
    #: What becomes of it is the next event, at once.
    call: Call | None = None
    effects: tuple[Effect, ...] = ()
