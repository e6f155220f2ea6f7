"""Stored support requests and their public records."""

from datetime import datetime

import msgspec

from tapgate.auth.owners import build_owner
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
    #: None for a request of an owner's user.
    phone_number: str | None
    owner_type: str | None
    owner: int | None
    owner_name: str | None
    #: Language of the customer or the owner's user.
    language: str
    about: str | None
    status: str
    priority: str
    assignee: int | None
    assignee_name: str | None
    created_at: datetime
    updated_at: datetime

    @property
    def public_id(self) -> str:
        return ids.encode(ids.SUPPORT_REQUEST, self.id)

    @property
    def owner_id(self) -> str | None:
        owner = build_owner(self.owner_type, self.owner)
        return None if owner is None else owner.public_id


def to_event(request: SupportRequest) -> SupportRequestEvent:
    return build_record(
        SupportRequestEvent,
        request,
        id=request.public_id,
        owner_id=request.owner_id or msgspec.UNSET,
    )


def to_record(
    request: SupportRequest,
    messages: list[SupportMessage],
    *,
    masked: bool = False,
    for_owner: bool = False,
) -> SupportRequestRecord:
    """Return the public record. Owners do not learn who handles their request."""
    if masked:
        return build_record(
            SupportRequestRecord,
            request,
            id=request.public_id,
            **_describe_owner(request),
            subscriber_name=None,
            phone_number=None,
            language=msgspec.UNSET,
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
    hidden = {"assignee": None, "assignee_name": None} if for_owner else {}
    return build_record(
        SupportRequestRecord,
        request,
        id=request.public_id,
        messages=records,
        **_describe_owner(request),
        **hidden,
    )


def _describe_owner(request: SupportRequest) -> dict[str, object]:
    """Return the fields that only a request of an owner's user has."""
    return {
        "owner_id": request.owner_id or msgspec.UNSET,
        "owner_name": request.owner_name or msgspec.UNSET,
        "about": request.about or msgspec.UNSET,
    }


def require_not_closed(request: SupportRequest) -> None:
    if request.status == SupportRequestStatus.CLOSED:
        raise ApiError(Code.ALREADY_RESOLVED, "The support request is closed.")
