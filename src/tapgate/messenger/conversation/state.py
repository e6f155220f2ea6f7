"""Conversation state and the engine's output."""

from typing import Final, Literal

import msgspec

from tapgate.core.images import EncodedImage
from tapgate.messenger.gateway_requests import GatewayRequest
from tapgate.messenger.model import (
    Agent,
    Card,
    Command,
    Language,
    OptionList,
    Person,
    Recipient,
    Reply,
    Subscriber,
)

#: A person's images that wait for their document type: one for each type.
MAX_KEPT_IMAGES: Final = 4

Stage = Literal["idle", "collecting", "confirm", "await_pin", "executing"]


class LaterWish(msgspec.Struct, frozen=True, kw_only=True):
    """Command that a text asked for in second place, with the facts from its words."""

    command: Command
    facts: dict[str, str] = msgspec.field(default_factory=dict)


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """Conversation state, stored as JSON between messages. Never holds a PIN."""

    stage: Stage = "idle"
    command: Command | None = None
    #: Current step in the command's script: a question or a gateway request.
    step: str | None = msgspec.field(default=None, name="piece")
    #: Values collected so far, by step name or fact name.
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    #: Starts when the command in progress ends, unless the person cancels or asks for another one.
    later: LaterWish | None = None
    #: Loaded again by each wallet command, and discarded when the conversation expires.
    subscriber: Subscriber | None = None
    #: Loaded again by each agent command.
    agent: Agent | None = None
    #: Cards offered while the subscriber chooses one.
    cards: tuple[Card, ...] = ()
    #: Operation that the PIN authorizes; for a transfer, the gateway's `request_id`.
    #: Stored before the PIN arrives, so a retry sends the same idempotency key.
    operation: str | None = None
    #: The transfer with the ID `operation` may have been executed; its outcome is unknown.
    uncertain: bool = False
    #: The form of `operation` was submitted, so its closing needs no reply.
    form_answered: bool = False
    #: Last options offered, for answers by number and for "More".
    offer: OptionList | None = None
    #: Command that "yes" to the last reply starts. Never a money transfer.
    suggested: Command | None = None
    #: Number of the last question. It is part of the option IDs, so that earlier options expire.
    question: int = 0
    #: The last transfer's recipient, who can be saved.
    met: Recipient | None = None
    #: An image was kept while another command was in progress; the next suggestion mentions it.
    has_kept_images: bool = False
    #: The previous conversation expired with an operation pending, or its state was unreadable.
    lapsed: bool = False
    #: Facts about the person learned in this conversation, which the person also has.
    language: Language | None = None
    phone: str | None = None
    trusted: bool = False

    @property
    def is_awaiting_pin(self) -> bool:
        return self.stage == "await_pin"


class EngineOutput(msgspec.Struct, frozen=True, kw_only=True):
    """Result of processing one event."""

    person: Person
    conversation: Conversation
    replies: tuple[Reply, ...] = ()
    #: Sent immediately. Its outcome is the next event.
    request: GatewayRequest | None = None
    #: Stored immediately, sealed and for a limited time. The conversation never holds it.
    kept_image: EncodedImage | None = None
    #: All of the person's kept images are deleted immediately.
    deletes_kept_images: bool = False
    #: Command that was in progress or started.
    command: Command | None = None
    #: The user canceled the command.
    is_canceled: bool = False
