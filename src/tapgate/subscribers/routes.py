"""The endpoints of subscribers."""

import msgspec

from tapgate import clock
from tapgate.edge.endpoint import Access, Endpoints
from tapgate.edge.fields import NewPin, OneTimeCode, Pin
from tapgate.edge.pagination import Page, paginate
from tapgate.edge.request_context import RequestContext
from tapgate.edge.shared_structs import OptionalReason, Reason, SuccessResponse
from tapgate.errors import Code
from tapgate.subscribers import limits, operations, pins, queries, restricted_access
from tapgate.subscribers.limits import Limits
from tapgate.subscribers.model import (
    DisclosedSubscriber,
    Registration,
    Subscriber,
    SubscriberFilters,
    SubscriberRecord,
    SubscriberUpdate,
    decode_subscriber_id,
    to_disclosed_record,
    to_record,
)
from tapgate.subscribers.restriction import is_hidden_from, require_subscriber_access

endpoints = Endpoints("Subscribers")

_READ_ACCESS = Access(scope="subscribers:read", roles="ACSF", service=True)
_PIN_ACCESS = Access(scope="subscribers:write", roles="AS", service=True)
_RESET_ACCESS = Access(roles="AS", service=True)
_ANY_ADMIN = Access(roles="ACSF")

_READ_ERRORS = (Code.SUBSCRIBER_NOT_FOUND, Code.OTP_REQUIRED)
_CHANGE_ERRORS = (*_READ_ERRORS, Code.NOT_CLOSABLE)
_PIN_ERRORS = (*_CHANGE_ERRORS, Code.INVALID_PIN, Code.ACCOUNT_LOCKED)


class PinVerification(msgspec.Struct, kw_only=True):
    pin: Pin


class PinChange(msgspec.Struct, kw_only=True):
    old_pin: Pin
    new_pin: NewPin


class PinReset(msgspec.Struct, kw_only=True):
    otp: OneTimeCode
    new_pin: NewPin


class OneTimeCodeVerification(msgspec.Struct, kw_only=True):
    otp: OneTimeCode


class SubscriberRegistered(msgspec.Struct, kw_only=True):
    success: bool = True
    message: str = "Subscriber registered"
    subscriber_id: str
    subscriber: SubscriberRecord


class SubscriberResponse(msgspec.Struct, kw_only=True):
    success: bool = True
    message: str
    subscriber: SubscriberRecord


class DisclosedSubscriberResponse(msgspec.Struct, kw_only=True):
    success: bool = True
    message: str = "Subscriber blocked"
    subscriber: DisclosedSubscriber


class PinVerified(msgspec.Struct, kw_only=True):
    success: bool = True
    verified: bool = True
    message: str = "PIN verified"


class AccessGranted(msgspec.Struct, kw_only=True):
    success: bool = True
    expires_at: str


def _to_record(call: RequestContext, subscriber: Subscriber) -> SubscriberRecord:
    return to_record(subscriber, call.services.clock())


async def _to_disclosed_record(call: RequestContext, subscriber: Subscriber) -> DisclosedSubscriber:
    """For changes that are also made to a subscriber who is, or becomes, hidden from the caller."""
    hidden = await is_hidden_from(call.services.database, call, subscriber.id)
    return to_disclosed_record(_to_record(call, subscriber), hidden=hidden)


@endpoints.post(
    "/api/v1/subscribers",
    access=Access(scope="subscribers:write", roles="AS", service=True),
    status=201,
    errors=(Code.DUPLICATE_PHONE, Code.DUPLICATE_ID_NUMBER),
)
async def register_subscriber(call: RequestContext, body: Registration) -> SubscriberRegistered:
    """Register a subscriber.

    The subscriber gets an empty wallet and starts as `ACTIVE` on KYC level 1. The phone number is
    kept in E.164; it and the number of the identity document belong to one subscriber each, also
    after that one was closed.
    """
    record = _to_record(call, await operations.register(call, body))
    return SubscriberRegistered(subscriber_id=record.id, subscriber=record)


@endpoints.get("/api/v1/subscribers", access=_READ_ACCESS, heavy="search")
async def list_subscribers(
    call: RequestContext, query: SubscriberFilters
) -> Page[SubscriberRecord]:
    """List subscribers.

    Newest first. `search` is a whole subscriber identifier, or words that each occur, in any case,
    in the name, the phone number or the number of the identity document; one of the words has at
    least 3 characters. Restricted subscribers are left out for those to whom they are closed.
    """
    services = call.services
    rows = await queries.list_page(services.database, query, call.principal, services.clock())
    return paginate(
        rows, query.limit, key=lambda row: row.id, show=lambda row: _to_record(call, row)
    )


@endpoints.get("/api/v1/subscribers/{id}", access=_READ_ACCESS, errors=_READ_ERRORS)
async def get_subscriber(call: RequestContext, id: str) -> SubscriberRecord:
    """Get a subscriber.

    A restricted subscriber is closed to API keys, and to an admin until the one-time code of
    `restricted-access` was verified: `OTP_REQUIRED`.
    """
    database = call.services.database
    subscriber = await queries.get(database, decode_subscriber_id(id))
    await require_subscriber_access(database, call, subscriber.id, restricted=subscriber.restricted)
    return _to_record(call, subscriber)


@endpoints.get(
    "/api/v1/subscribers/{id}/limits",
    access=Access(roles="ACSF", service=True),
    errors=_READ_ERRORS,
)
async def get_limits(call: RequestContext, id: str) -> Limits:
    """Get what a subscriber may send and hold, and how much of it is used.

    As the ledger counts it now: what was sent on an earlier day, or in an earlier month of the
    platform's time zone, does not count any more; what was given back does not count either.
    """
    services = call.services
    subscriber = await queries.get(services.database, decode_subscriber_id(id))
    await require_subscriber_access(
        services.database, call, subscriber.id, restricted=subscriber.restricted
    )
    allowance = await services.ledger.get_allowance(services.database, subscriber.id)
    assert allowance is not None, "every subscriber has a wallet"
    return limits.to_record(allowance, subscriber.currency, services.settings.timezone)


@endpoints.put(
    "/api/v1/subscribers/{id}",
    access=Access(scope="subscribers:write", roles="ASC"),
    field_access=dict.fromkeys(("kyc_level", "kyc_status", "restricted"), Access(roles="AC")),
    errors=(*_CHANGE_ERRORS, Code.DUPLICATE_PHONE, Code.DUPLICATE_ID_NUMBER),
)
async def update_subscriber(
    call: RequestContext, id: str, body: SubscriberUpdate
) -> DisclosedSubscriber:
    """Update a subscriber.

    Fields that are absent or null keep their value. A higher `kyc_level` has higher limits: see the
    account rules. `restricted` closes the record to API keys, and to admins without a one-time code
    from the subscriber's phone: the response then has only `id`, `restricted`, `status` and
    `status_reason`. It also ends the subscriber's statement links. A closed subscriber cannot be
    changed.
    """
    return await _to_disclosed_record(
        call, await operations.update(call, decode_subscriber_id(id), body)
    )


@endpoints.post(
    "/api/v1/subscribers/{id}/block",
    access=Access(scope="subscribers:write", roles="ACS"),
    errors=(Code.SUBSCRIBER_NOT_FOUND, Code.ALREADY_BLOCKED, Code.NOT_CLOSABLE),
)
async def block_subscriber(
    call: RequestContext, id: str, body: Reason
) -> DisclosedSubscriberResponse:
    """Block a subscriber.

    Every payment from and to the wallet is refused immediately, with every card; the cards keep
    their own status. Refunds still arrive. A restricted subscriber can be blocked without a
    one-time code: the response then has only `id`, `restricted`, `status` and `status_reason`.
    """
    subscriber = await operations.block(call, decode_subscriber_id(id), body.reason)
    return DisclosedSubscriberResponse(subscriber=await _to_disclosed_record(call, subscriber))


@endpoints.post(
    "/api/v1/subscribers/{id}/unblock",
    access=Access(scope="subscribers:write", roles="AC"),
    errors=(*_CHANGE_ERRORS, Code.NOT_BLOCKED),
)
async def unblock_subscriber(
    call: RequestContext, id: str, body: OptionalReason
) -> SubscriberResponse:
    """Unblock a subscriber.

    Cards that were active before work again; cards that were blocked themselves stay blocked.
    """
    subscriber = await operations.unblock(call, decode_subscriber_id(id), body.reason)
    return SubscriberResponse(
        message="Subscriber unblocked", subscriber=_to_record(call, subscriber)
    )


@endpoints.post("/api/v1/subscribers/{id}/close", access=Access(roles="A"), errors=_CHANGE_ERRORS)
async def close_subscriber(call: RequestContext, id: str, body: Reason) -> SubscriberResponse:
    """Close a subscriber for good.

    The wallet must be empty and nothing in it held, else `NOT_CLOSABLE`; whatever is asked of a
    closed subscriber later is answered with the same code.
    """
    subscriber = await operations.close(call, decode_subscriber_id(id), body.reason)
    return SubscriberResponse(message="Subscriber closed", subscriber=_to_record(call, subscriber))


@endpoints.post("/api/v1/subscribers/{id}/verify-pin", access=_PIN_ACCESS, errors=_PIN_ERRORS)
async def verify_pin(call: RequestContext, id: str, body: PinVerification) -> PinVerified:
    """Verify the PIN.

    A wrong PIN is counted like one at a terminal: the third in a row locks it for 30 minutes, a
    right one starts the count again.
    """
    await pins.verify_pin(call, decode_subscriber_id(id), body.pin)
    return PinVerified()


@endpoints.post(
    "/api/v1/subscribers/{id}/change-pin",
    access=_PIN_ACCESS,
    errors=(*_PIN_ERRORS, Code.SAME_PIN),
    invalid_is_400=True,
)
async def change_pin(call: RequestContext, id: str, body: PinChange) -> SuccessResponse:
    """Change the PIN.

    A wrong old PIN is counted as in verify-pin. Whatever is wrong with a PIN's form is answered
    with 400 here, and `SAME_PIN` only when the old PIN was right.
    """
    await pins.change_pin(call, decode_subscriber_id(id), body.old_pin, body.new_pin)
    return SuccessResponse(message="PIN changed")


@endpoints.post("/api/v1/subscribers/{id}/reset-pin", access=_RESET_ACCESS, errors=_CHANGE_ERRORS)
async def request_pin_reset(call: RequestContext, id: str) -> SuccessResponse:
    """Ask for a new PIN.

    Sends a one-time code of 6 digits to the subscriber's phone. It is valid for 5 minutes and 3
    tries, and replaces the previous one. A phone number gets at most 1 code a minute and 5 an hour,
    over every route: 429 with `Retry-After`.
    """
    await pins.request_pin_reset(call, decode_subscriber_id(id))
    return SuccessResponse(message="A one-time code was sent to the subscriber's phone")


@endpoints.post(
    "/api/v1/subscribers/{id}/reset-pin/confirm",
    access=_RESET_ACCESS,
    errors=(*_CHANGE_ERRORS, Code.INVALID_OTP),
)
async def reset_pin(call: RequestContext, id: str, body: PinReset) -> SuccessResponse:
    """Set a new PIN with the one-time code.

    The old PIN is not needed, and its lock ends. A code that is wrong three times, expired or used
    is no longer any good: ask for another.
    """
    await pins.reset_pin(call, decode_subscriber_id(id), body.otp, body.new_pin)
    return SuccessResponse(message="PIN reset")


@endpoints.post(
    "/api/v1/subscribers/{id}/restricted-access",
    access=_ANY_ADMIN,
    errors=(Code.SUBSCRIBER_NOT_FOUND,),
)
async def request_restricted_access(call: RequestContext, id: str) -> SuccessResponse:
    """Ask for access to a restricted subscriber.

    Sends a one-time code to the subscriber's phone, for this admin only. It is valid for 5 minutes
    and 3 tries. A phone number gets at most 1 code a minute and 5 an hour, over every route: 429
    with `Retry-After`.
    """
    await restricted_access.request_access(call, decode_subscriber_id(id))
    return SuccessResponse(message="A one-time code was sent to the subscriber's phone")


@endpoints.post(
    "/api/v1/subscribers/{id}/restricted-access/verify",
    access=_ANY_ADMIN,
    errors=(Code.SUBSCRIBER_NOT_FOUND, Code.INVALID_OTP),
)
async def verify_restricted_access(
    call: RequestContext, id: str, body: OneTimeCodeVerification
) -> AccessGranted:
    """Open a restricted subscriber with the one-time code.

    Until `expires_at`, 15 minutes from now, this admin sees and changes this subscriber as any
    other.
    """
    expires_at = await restricted_access.grant_access(call, decode_subscriber_id(id), body.otp)
    return AccessGranted(expires_at=clock.format_rfc3339(expires_at))
