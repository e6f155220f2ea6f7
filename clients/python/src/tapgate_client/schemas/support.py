"""Requests and responses of support requests."""

from enum import StrEnum
from typing import Annotated, Final

import msgspec

from tapgate_client import ids
from tapgate_client.schemas.assignees import AssigneeFilter
from tapgate_client.schemas.common import Redacted
from tapgate_client.schemas.fields import IdRule, Phone, TextRule
from tapgate_client.schemas.owners import OwnerIdField
from tapgate_client.schemas.pagination import OrderedPageQuery
from tapgate_client.schemas.subscribers import SubscriberLanguage
from tapgate_client.schemas.values import AdminId, AdminName, Example, Id, PhoneNumber, Time, Word

#: Longest customer text: the maximum length of a chat message.
MAX_CUSTOMER_TEXT_LENGTH: Final = 4096
MAX_MESSAGE_ID_LENGTH: Final = 64
#: Longest reply text: it must fit into a message template parameter.
MAX_REPLY_LENGTH: Final = 1000
#: Messages in one request from each side.
MAX_MESSAGES: Final = 100
#: Requests of one owner that are not closed.
MAX_OWNER_REQUESTS: Final = 20
#: Open requests beyond this number are not counted, so that the count stays fast.
MAX_COUNTED_REQUESTS: Final = 100


class SupportRequestStatus(StrEnum):
    OPEN = "open"  # waits for support staff
    ANSWERED = "answered"  # waits for the customer
    CLOSED = "closed"


class SupportPriority(StrEnum):
    NORMAL = "normal"
    URGENT = "urgent"  # a customer objects to a phone number change


class SupportSender(StrEnum):
    CUSTOMER = "customer"
    STAFF = "staff"


class NewSupportMessage(Redacted, msgspec.Struct, kw_only=True):
    """Customer message. With `append_only`, it never opens a new request.

    `message_id` identifies the message in the chat. A message whose ID was already received from
    the phone number is not stored again.
    """

    phone_number: Phone
    text: Annotated[str, TextRule(MAX_CUSTOMER_TEXT_LENGTH, example="My card was charged twice.")]
    append_only: bool = False
    message_id: Annotated[str, TextRule(MAX_MESSAGE_ID_LENGTH)] | None = None


class NewOwnerRequest(Redacted, msgspec.Struct, kw_only=True):
    """Question of an owner's user. `about` is a transaction, payout or dispute of the owner."""

    text: Annotated[
        str, TextRule(MAX_CUSTOMER_TEXT_LENGTH, example="When do I get yesterday's payout?")
    ]
    about: Annotated[str, TextRule(MAX_MESSAGE_ID_LENGTH)] | None = None


class NewOwnerMessage(Redacted, msgspec.Struct, kw_only=True):
    text: Annotated[
        str, TextRule(MAX_CUSTOMER_TEXT_LENGTH, example="When do I get yesterday's payout?")
    ]


class SupportReply(Redacted, msgspec.Struct, kw_only=True):
    text: Annotated[str, TextRule(MAX_REPLY_LENGTH, example="My card was charged twice.")]


class SupportRequestFilters(OrderedPageQuery, kw_only=True):
    status: SupportRequestStatus | None = None
    assignee: AssigneeFilter | None = None
    subscriber_id: Annotated[str, IdRule(ids.SUBSCRIBER)] | None = None
    phone_number: Phone | None = None
    owner_id: OwnerIdField | None = None


class SupportMessageRecord(Redacted, msgspec.Struct, frozen=True, kw_only=True):
    from_: Annotated[SupportSender, Example("customer")] = msgspec.field(name="from")
    text: Annotated[str, Example("My card was charged twice.")]
    at: Annotated[Word, Example("2026-01-31T09:15:00.000Z")]


class SupportRequestEvent(msgspec.Struct, frozen=True, kw_only=True):
    """`data` of `support.requested`: the request without its messages.

    For a restricted subscriber, `phone_number` is null and `masked` is true.
    """

    id: Annotated[Id, Example("req_0800000000000")]
    subscriber_id: Id | None
    owner_id: Annotated[Id, Example("prc_0800000000000")] | msgspec.UnsetType = msgspec.UNSET
    phone_number: PhoneNumber | None
    status: SupportRequestStatus
    priority: SupportPriority
    assignee: AdminId | None
    assignee_name: AdminName | None
    created_at: Time
    updated_at: Time
    masked: bool | msgspec.UnsetType = msgspec.UNSET


class SupportRequestRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Support request of a customer, or of a processor's, partner's or agent's user.

    A user's request has `owner_id` and `owner_name`, but no phone number. `about` is the
    transaction, payout or dispute that it concerns. `assignee` and `assignee_name` are null for
    users. `language` is the language of the customer or user, `en` if it is unknown.

    For a restricted subscriber, `masked` is true, `subscriber_name` and `phone_number` are null,
    `language` is absent and `messages` is empty until the admin verifies a one-time code.
    """

    id: Id
    subscriber_id: Id | None
    phone_number: PhoneNumber | None
    subscriber_name: str | None
    owner_id: Annotated[Id, Example("prc_0800000000000")] | msgspec.UnsetType = msgspec.UNSET
    owner_name: Annotated[str, Example("Kamara Stores")] | msgspec.UnsetType = msgspec.UNSET
    about: Annotated[Id, Example("txn_0800000000000")] | msgspec.UnsetType = msgspec.UNSET
    language: SubscriberLanguage | msgspec.UnsetType = msgspec.UNSET
    status: SupportRequestStatus
    priority: SupportPriority
    messages: list[SupportMessageRecord]
    assignee: AdminId | None
    assignee_name: AdminName | None
    created_at: Time
    updated_at: Time
    masked: bool | msgspec.UnsetType = msgspec.UNSET


class SupportSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Number of open support requests, at most 100."""

    open: int
