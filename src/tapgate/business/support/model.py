"""Stored support requests and their public records."""

from datetime import datetime

import msgspec

from tapgate.core.records import build_record
from tapgate_client import ids
from tapgate_client.clock import format_rfc3339
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.support import (
    SupportMessageRecord,
    SupportRequestEvent,
    SupportRequestRecord,
    SupportRequestStatus,
)


class SupportMessage(msgspec.Struct, frozen=True, kw_only=True):
    sender: str
    text: str
    created_at: datetime


class ReceivedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Customer message position. A request's first message has opened it."""

    request_id: int
    number: int


class SupportRequest(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    subscriber_id: int | None
    subscriber_name: str | None
    phone_number: str
    status: str
    priority: str
    assignee: int | None
    assignee_name: str | None
    created_at: datetime
    updated_at: datetime

    @property
    def public_id(self) -> str:
        return ids.encode(ids.SUPPORT_REQUEST, self.id)


def to_event(request: SupportRequest) -> SupportRequestEvent:
    return build_record(SupportRequestEvent, request, id=request.public_id)


def to_record(
    request: SupportRequest, messages: list[SupportMessage], *, masked: bool = False
) -> SupportRequestRecord:
    if masked:
        return build_record(
            SupportRequestRecord,
            request,
            id=request.public_id,
            subscriber_name=None,
            phone_number=None,
            messages=[],
            masked=True,
        )
    records = [
        build_record(
            SupportMessageRecord,
            message,
            from_=message.sender,
            at=format_rfc3339(message.created_at),
        )
        for message in messages
    ]
    return build_record(SupportRequestRecord, request, id=request.public_id, messages=records)


def require_not_closed(request: SupportRequest) -> None:
    if request.status == SupportRequestStatus.CLOSED:
        raise ApiError(Code.ALREADY_RESOLVED, "The support request is closed.")
