"""Subscriber timeline."""

from enum import StrEnum
from typing import Annotated

import msgspec

from tapgate_client.schemas.chat import ChatChannel, ChatInput
from tapgate_client.schemas.messages import MessageChannel
from tapgate_client.schemas.pagination import PageQuery
from tapgate_client.schemas.transactions import Direction
from tapgate_client.schemas.values import CurrencyCode, Example, Money, Word


class TimelineKind(StrEnum):
    TRANSACTION = "transaction"
    PIN = "pin"  # wrong PINs, PIN changes and PIN resets
    MESSAGE = "message"  # to the subscriber's phone
    CHAT = "chat"  # chat turns: messages from the subscriber with the replies to them
    SUPPORT = "support"  # messages between the subscriber and support staff
    KYC = "kyc"
    ALERT = "alert"
    ACTION = "action"  # other changes to the subscriber and the subscriber's cards


class TimelineFilters(PageQuery, kw_only=True):
    kind: TimelineKind | None = None


class TimelineItem(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened to a subscriber.

    `event` depends on `kind`: a transaction's type, a message's template, a chat turn's command or
    `message` without one, a support message's sender, an alert's type, or an audit entry's event.
    Message texts are not part of the timeline. `resource_id` is the ID of the transaction, message,
    chat turn, support request, alert or audit entry, and null for wrong PINs. Of the other fields,
    those without a value are null.
    """

    at: Word
    kind: TimelineKind
    event: Annotated[Word, Example("subscriber.blocked")]
    resource_id: str | None = None
    status: Word | None = None
    amount: Money | None = None
    currency: CurrencyCode | None = None
    direction: Direction | None = None
    counterparty: str | None = None
    failure_code: Word | None = None
    #: Attempts in the same millisecond, for wrong PINs.
    count: int | None = None
    #: Where the subscriber wrote to the chat, what was sent, and the number of replies.
    channel: ChatChannel | None = None
    #: How a message went out.
    message_channel: MessageChannel | None = None
    input: ChatInput | None = None
    replies: int | None = None
    actor_type: str | None = None
    actor_name: str | None = None
    reason: str | None = None
