"""Timeline of a subscriber."""

from enum import StrEnum

import msgspec

from tapgate_client.schemas.chat import ChatChannel, ChatInput
from tapgate_client.schemas.pagination import PageQuery
from tapgate_client.schemas.transactions import Direction
from tapgate_client.schemas.values import Money, Word


class TimelineKind(StrEnum):
    TRANSACTION = "transaction"
    PIN = "pin"  # wrong PINs, and changes and resets of the PIN
    MESSAGE = "message"  # to the subscriber's phone
    CHAT = "chat"  # turns of the chat: messages from the subscriber with the replies to them
    SUPPORT = "support"  # messages between the subscriber and support staff
    KYC = "kyc"
    ALERT = "alert"
    ACTION = "action"  # other changes of the subscriber and the subscriber's cards


class TimelineFilters(PageQuery, kw_only=True):
    kind: TimelineKind | None = None


class TimelineItem(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened to a subscriber.

    `event` depends on `kind`: the type of a transaction, the template of a message, the command of
    a chat turn or `message` without one, the sender of a support message, the type of an alert, or
    the event of an audit entry. Texts of messages are not part of the timeline. `resource_id` is
    the ID of the transaction, message, chat turn, support request, alert or audit entry, and null
    for wrong PINs. Of the other fields, those without a value are null.
    """

    at: Word
    kind: TimelineKind
    event: Word
    resource_id: str | None = None
    status: Word | None = None
    amount: Money | None = None
    currency: Word | None = None
    direction: Direction | None = None
    counterparty: str | None = None
    failure_code: Word | None = None
    #: Attempts in the same millisecond, for wrong PINs.
    count: int | None = None
    #: Where the subscriber wrote to the chat, what was sent, and the number of replies.
    channel: ChatChannel | None = None
    input: ChatInput | None = None
    replies: int | None = None
    actor_type: str | None = None
    actor_name: str | None = None
    reason: str | None = None
