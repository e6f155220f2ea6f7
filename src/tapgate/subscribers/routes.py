"""The endpoints of subscribers."""

import msgspec

from tapgate import clock
from tapgate.edge.bodies import Done, OptionalReason, Reason
from tapgate.edge.call import Call
from tapgate.edge.endpoint import Access, Endpoints
from tapgate.edge.fields import OneTimeCode, Pin
from tapgate.edge.pages import Page, cut
from tapgate.errors import Code
from tapgate.subscribers import operations, pins, queries, restricted_access
from tapgate.subscribers.model import (
    Filters,
    Registration,
    Subscriber,
    SubscriberRecord,
    Update,
    read_id,
    shown,
)
from tapgate.subscribers.restriction import require_open

endpoints = Endpoints("Subscribers")

_READ = Access(scope="subscribers:read", roles="ACSF", service=True)
_PIN = Access(scope="subscribers:write", roles="AS", service=True)
_RESET = Access(roles="AS", service=True)
_ANY_ADMIN = Access(roles="ACSF")

_TO_READ = (Code.SUBSCRIBER_NOT_FOUND, Code.OTP_REQUIRED)
_TO_CHANGE = (*_TO_READ, Code.NOT_CLOSABLE)
_TO_TRY_A_PIN = (*_TO_CHANGE, Code.INVALID_PIN, Code.ACCOUNT_LOCKED)


class PinTry(msgspec.Struct, kw_only=True):
    pin: Pin


class PinChange(msgspec.Struct, kw_only=True):
    old_pin: Pin
    new_pin: Pin


class PinReset(msgspec.Struct, kw_only=True):
    otp: OneTimeCode
    new_pin: Pin


class CodeTry(msgspec.Struct, kw_only=True):
    otp: OneTimeCode


class Registered(msgspec.Struct, kw_only=True):
    success: bool = True
    message: str = "Subscriber registered"
    subscriber_id: str
    subscriber: SubscriberRecord


class Moved(msgspec.Struct, kw_only=True):
    success: bool = True
    message: str
    subscriber: SubscriberRecord


class Verified(msgspec.Struct, kw_only=True):
    success: bool = True
    verified: bool = True
    message: str = "PIN verified"


class Granted(msgspec.Struct, kw_only=True):
    success: bool = True
    expires_at: str


def _shown(call: Call, subscriber: Subscriber) -> SubscriberRecord:
    return shown(subscriber, call.services.clock())


@endpoints.post(
    "/api/v1/subscribers",
    access=Access(scope="subscribers:write", roles="AS", service=True),
    status=201,
    errors=(Code.DUPLICATE_PHONE, Code.DUPLICATE_ID_NUMBER),
)
async def register(call: Call, body: Registration) -> Registered:
    """Register a subscriber."""
    record = _shown(call, await operations.register(call, body))
    return Registered(subscriber_id=record.id, subscriber=record)


@endpoints.get("/api/v1/subscribers", access=_READ)
async def list_subscribers(call: Call, query: Filters) -> Page[SubscriberRecord]:
    """List subscribers, newest first.

    `search` is a whole subscriber identifier, or words that each occur, in any case, in the name,
    the phone number or the number of the identity document. Restricted subscribers are left out
    for those to whom they are closed.
    """
    services = call.services
    rows = await queries.page(services.database, query, call.principal, services.clock())
    return cut(rows, query.limit, key=lambda row: row.id, show=lambda row: _shown(call, row))


@endpoints.get("/api/v1/subscribers/{id}", access=_READ, errors=_TO_READ)
async def get_subscriber(call: Call, id: str) -> SubscriberRecord:
    """Get a subscriber."""
    database = call.services.database
    subscriber = await queries.get(database, read_id(id))
    await require_open(database, call, subscriber.id, restricted=subscriber.restricted)
    return _shown(call, subscriber)


@endpoints.put(
    "/api/v1/subscribers/{id}",
    access=Access(scope="subscribers:write", roles="ASC"),
    field_access=dict.fromkeys(("kyc_level", "kyc_status", "restricted"), Access(roles="AC")),
    errors=(*_TO_CHANGE, Code.DUPLICATE_PHONE, Code.DUPLICATE_ID_NUMBER),
)
async def update(call: Call, id: str, body: Update) -> SubscriberRecord:
    """Update a subscriber.

    What is left out stays as it is. `kyc_level`, `kyc_status` and `restricted` are changed by
    system_admin and compliance_user only.
    """
    return _shown(call, await operations.update(call, read_id(id), body))


@endpoints.post(
    "/api/v1/subscribers/{id}/block",
    access=Access(scope="subscribers:write", roles="ACS"),
    errors=(Code.SUBSCRIBER_NOT_FOUND, Code.ALREADY_BLOCKED, Code.NOT_CLOSABLE),
)
async def block(call: Call, id: str, body: Reason) -> Moved:
    """Block a subscriber.

    Payments are refused at once, with every card; restricted subscribers can be blocked too.
    """
    subscriber = await operations.block(call, read_id(id), body.reason)
    return Moved(message="Subscriber blocked", subscriber=_shown(call, subscriber))


@endpoints.post(
    "/api/v1/subscribers/{id}/unblock",
    access=Access(scope="subscribers:write", roles="AC"),
    errors=(*_TO_CHANGE, Code.NOT_BLOCKED),
)
async def unblock(call: Call, id: str, body: OptionalReason) -> Moved:
    """Unblock a subscriber."""
    subscriber = await operations.unblock(call, read_id(id), body.reason)
    return Moved(message="Subscriber unblocked", subscriber=_shown(call, subscriber))


@endpoints.post("/api/v1/subscribers/{id}/close", access=Access(roles="A"), errors=_TO_CHANGE)
async def close(call: Call, id: str, body: Reason) -> Moved:
    """Close a subscriber for good.

    The wallet must be empty and nothing in it held.
    """
    subscriber = await operations.close(call, read_id(id), body.reason)
    return Moved(message="Subscriber closed", subscriber=_shown(call, subscriber))


@endpoints.post("/api/v1/subscribers/{id}/verify-pin", access=_PIN, errors=_TO_TRY_A_PIN)
async def verify_pin(call: Call, id: str, body: PinTry) -> Verified:
    """Verify the PIN."""
    await pins.verify_pin(call, read_id(id), body.pin)
    return Verified()


@endpoints.post(
    "/api/v1/subscribers/{id}/change-pin",
    access=_PIN,
    errors=(*_TO_TRY_A_PIN, Code.SAME_PIN),
    invalid_is_400=True,
)
async def change_pin(call: Call, id: str, body: PinChange) -> Done:
    """Change the PIN."""
    await pins.change_pin(call, read_id(id), body.old_pin, body.new_pin)
    return Done(message="PIN changed")


@endpoints.post("/api/v1/subscribers/{id}/reset-pin", access=_RESET, errors=_TO_CHANGE)
async def request_pin_reset(call: Call, id: str) -> Done:
    """Send a one-time code to the phone, to set a new PIN with."""
    await pins.request_pin_reset(call, read_id(id))
    return Done(message="A one-time code was sent to the subscriber's phone")


@endpoints.post(
    "/api/v1/subscribers/{id}/reset-pin/confirm",
    access=_RESET,
    errors=(*_TO_CHANGE, Code.INVALID_OTP),
)
async def reset_pin(call: Call, id: str, body: PinReset) -> Done:
    """Set a new PIN with the one-time code; a locked PIN is unlocked."""
    await pins.reset_pin(call, read_id(id), body.otp, body.new_pin)
    return Done(message="PIN reset")


@endpoints.post(
    "/api/v1/subscribers/{id}/restricted-access",
    access=_ANY_ADMIN,
    errors=(Code.SUBSCRIBER_NOT_FOUND,),
)
async def request_restricted_access(call: Call, id: str) -> Done:
    """Send a one-time code to the phone of a restricted subscriber."""
    await restricted_access.request_access(call, read_id(id))
    return Done(message="A one-time code was sent to the subscriber's phone")


@endpoints.post(
    "/api/v1/subscribers/{id}/restricted-access/verify",
    access=_ANY_ADMIN,
    errors=(Code.SUBSCRIBER_NOT_FOUND, Code.INVALID_OTP),
)
async def verify_restricted_access(call: Call, id: str, body: CodeTry) -> Granted:
    """Open a restricted subscriber to this admin for 15 minutes."""
    expires_at = await restricted_access.grant_access(call, read_id(id), body.otp)
    return Granted(expires_at=clock.rfc3339(expires_at))
