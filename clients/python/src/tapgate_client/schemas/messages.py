"""Delivery statuses for messages sent to phones, as reported by the messenger."""

from enum import StrEnum
from typing import Annotated, Final

import msgspec

from tapgate_client import ids
from tapgate_client.schemas.fields import Choice, IdRule, ListLength, TextRule
from tapgate_client.schemas.values import Example, Time, Word


class MessageStatus(StrEnum):
    """Message delivery status. The messenger reports all but `QUEUED`."""

    QUEUED = "queued"
    SENT = "sent"
    FAILED = "failed"
    DELIVERED = "delivered"
    READ = "read"


class MessageChannel(StrEnum):
    """How a message went out. SMS is for messages that did not arrive in the chat."""

    CHAT = "chat"
    SMS = "sms"


#: In ascending rank. A report overwrites only a lower-ranked status, because reports may be
#: duplicated or out of order.
STATUS_ORDER: Final = (
    MessageStatus.SENT,
    MessageStatus.FAILED,
    MessageStatus.DELIVERED,
    MessageStatus.READ,
)
MAX_REPORTS: Final = 100


class MessageRecord(msgspec.Struct, frozen=True, kw_only=True):
    message_id: str
    template: Annotated[str, Example("verification_code")]
    language: Annotated[Word, Example("en")]
    status: MessageStatus
    channel: MessageChannel
    error_code: Word | None
    created_at: Time
    updated_at: Time | None


class StatusReport(msgspec.Struct, kw_only=True):
    message_id: Annotated[str, IdRule(ids.MESSAGE)]
    status: Annotated[MessageStatus, Choice(*STATUS_ORDER, name="MessageReportStatus")]
    error_code: Annotated[str, TextRule(40)] | None = None
    channel: MessageChannel = MessageChannel.CHAT


class StatusReports(msgspec.Struct, kw_only=True):
    data: Annotated[list[StatusReport], ListLength(1, MAX_REPORTS)]


class ReportStatusesResponse(msgspec.Struct, kw_only=True):
    updated: int
