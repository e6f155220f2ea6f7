"""Subscriber endpoints."""

from operator import itemgetter

import msgspec

from tapgate.auth.disclosure import is_hidden
from tapgate.business.customers.subscribers import operations, queries, restricted_access
from tapgate.business.customers.subscribers.book_numbers import require_free_elsewhere
from tapgate.business.customers.subscribers.model import (
    Subscriber,
    to_disclosed_record,
    to_limits_record,
    to_record,
)
from tapgate.business.customers.subscribers.pins import pin_operations
from tapgate.business.pins import routes as pin_routes
from tapgate.core.message_templates import Notice
from tapgate.core.pagination import paginate
from tapgate.core.records import SubscriberId
from tapgate.events.notifications import message_statuses
from tapgate.events.notifications.codes import ONE_TIME_CODE_TEMPLATE
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.notice_declarations import Unnoticed
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import clock
from tapgate_client.errors import Code
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.common import OptionalReason, Reason, SuccessResponse
from tapgate_client.schemas.messages import MessageRecord
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.subscribers import (
    AccessGranted,
    DisclosedSubscriber,
    DisclosedSubscriberResponse,
    Limits,
    MessageFilters,
    OneTimeCodeVerification,
    PinChange,
    PinReset,
    PinVerification,
    PinVerified,
    Registration,
    SubscriberFilters,
    SubscriberRecord,
    SubscriberRegistered,
    SubscriberResponse,
    SubscriberUpdate,
)

endpoints = Endpoints(
    "Subscribers", "/api/v1/subscribers", objects=ObjectAccess.UNRESTRICTED, owners=NEVER
)

_READ_ACCESS = Access(scope="subscribers:read", roles="ACSF", service=True)
_PIN_ACCESS = Access(scope="subscribers:write", roles="AS", service=True)
_RESET_ACCESS = Access(roles="AS", service=True)
_ANY_ADMIN = Access(roles="ACSF")
_COMPLIANCE_FIELDS = ("kyc_level", "kyc_status", "restricted")
#: Services can change only the language and which messages are sent.
_UPDATE_FIELD_ACCESS = {
    field: Access(roles="AC")
    if field in _COMPLIANCE_FIELDS
    else Access(scope="subscribers:write", roles="ASC")
    for field in SubscriberUpdate.__struct_fields__
    if field not in ("language", "messages")
}

_READ_ERRORS = (Code.OTP_REQUIRED,)
_CHANGE_ERRORS = (*_READ_ERRORS, Code.NOT_CLOSABLE)
_PIN_ERRORS = (*_CHANGE_ERRORS, Code.INVALID_PIN, Code.ACCOUNT_LOCKED)


def _to_record(request: GuardedRequest, subscriber: Subscriber) -> SubscriberRecord:
    return to_record(subscriber, request.services.clock())


async def _to_disclosed_record(
    request: GuardedRequest, tx: Transaction, subscriber: Subscriber
) -> DisclosedSubscriber:
    """Return a changed subscriber's record; the subscriber may be hidden from the caller."""
    hidden = await is_hidden(tx, request.caller, tx.now(), subscriber.id)
    return to_disclosed_record(_to_record(request, subscriber), hidden=hidden)


async def _require_free_number(
    request: GuardedRequest, body: Registration | SubscriberUpdate, id: int | None = None
) -> None:
    if body.phone_number is None:
        return
    subscriber_id = await queries.find_id_by_phone(request.services.database, body.phone_number)
    if subscriber_id is None:
        await require_free_elsewhere(request.services.book_peers, body.phone_number)


@endpoints.post(
    "",
    access=Access(scope="subscribers:write", roles="AS", service=True),
    status=201,
    prepare=_require_free_number,
    errors=(Code.DUPLICATE_PHONE, Code.DUPLICATE_ID_NUMBER),
    unguarded=Unguarded.NO_MONEY,
    objects=ObjectAccess.NO_OBJECT,
    unnoticed=Unnoticed.NEW,
)
async def register_subscriber(
    request: RequestContext, tx: Transaction, body: Registration
) -> SubscriberRegistered:
    """Register a subscriber.

    The subscriber gets an empty wallet and starts as `ACTIVE` at KYC level 1. The phone number is
    stored in E.164 format. Phone numbers and identity document numbers are unique and stay reserved
    after a subscriber is closed. A number that a customer of another book has is rejected, with the
    book in `details.book`.
    """
    services = request.services
    subscriber = await operations.register(
        tx, request.actor, body, pin_verifier=services.pin_verifier, settings=services.settings
    )
    record = _to_record(request, subscriber)
    return SubscriberRegistered(subscriber_id=record.id, subscriber=record)


@endpoints.get("", access=_READ_ACCESS, heavy="search")
async def list_subscribers(
    request: RequestContext, query: SubscriberFilters
) -> Page[SubscriberRecord]:
    """List subscribers.

    Newest first, or by first and last name with `order=name`. With `kyc_status=PENDING` and without
    `order=name`, the subscriber who has waited longest for a KYC decision is first, and those who
    are not waiting (`kyc_pending_since` is null) are last.

    `search` is either a complete subscriber ID or a list of words. Each word must
    occur, ignoring case, in the name, phone number or identity document number, and at least one
    word must have 3 or more characters. Restricted subscribers are omitted if the caller may not
    access them, even while they wait for a KYC decision. The audit log lists their uploads as
    `subscriber.kyc_document_added`.
    """
    services = request.services
    rows = await queries.list_page(services.database, query, request.principal, services.clock())
    return paginate(
        rows,
        query,
        lambda row: _to_record(request, row),
        lambda row: queries.get_position(query, row),
    )


@endpoints.get("/{id}", access=_READ_ACCESS, errors=_READ_ERRORS)
async def get_subscriber(request: RequestContext, id: SubscriberId) -> SubscriberRecord:
    """Get a subscriber.

    API keys cannot access a restricted subscriber. Admins must first request and verify a one-time
    code with `restricted-access`. Without access, the request fails with `OTP_REQUIRED`.
    """
    services = request.services
    subscriber = await queries.get_accessible(
        services.database, request.caller, services.clock(), id
    )
    return _to_record(request, subscriber)


@endpoints.get("/{id}/limits", access=Access(roles="ACSF", service=True), errors=_READ_ERRORS)
async def get_limits(request: RequestContext, id: SubscriberId) -> Limits:
    """Get a subscriber's spending and balance limits, with current usage.

    Usage is what the ledger currently counts against the daily and monthly limits. Days and months
    follow the platform's time zone. Refunded amounts and transactions rejected in review do not
    count.
    """
    services = request.services
    subscriber = await queries.get_accessible(
        services.database, request.caller, services.clock(), id
    )
    allowance = await services.ledger.get_allowance(services.database, subscriber.id)
    assert allowance is not None, "every subscriber has a wallet"
    return to_limits_record(allowance, subscriber.currency, services.settings.timezone)


async def _describe_update(
    request: GuardedRequest, id: int, body: SubscriberUpdate
) -> Proposal | None:
    if body.phone_number is None and body.kyc_level is None:
        return None
    services = request.services
    subscriber = await queries.get_accessible(
        services.database, request.caller, services.clock(), id
    )
    changes_phone = body.phone_number not in (None, subscriber.phone_number)
    raises_level = body.kyc_level is not None and body.kyc_level > subscriber.kyc_level
    if not changes_phone and not raises_level:
        return None
    summary = f"Change the phone number of customer {subscriber.public_id}"
    if changes_phone and raises_level:
        summary += f" and raise the KYC level to {body.kyc_level}"
    elif raises_level:
        summary = f"Raise the KYC level of customer {subscriber.public_id} to {body.kyc_level}"
    return Proposal(
        operations=(
            *([Operation.SUBSCRIBER_PHONE] if changes_phone else []),
            *([Operation.KYC_LEVEL] if raises_level else []),
        ),
        summary=summary,
        resource_id=subscriber.public_id,
        before=msgspec.to_builtins(_to_record(request, subscriber)),
    )


@endpoints.put(
    "/{id}",
    access=Access(scope="subscribers:write", roles="ASC", service=True),
    guard=Guard(_describe_update, Operation.SUBSCRIBER_PHONE, Operation.KYC_LEVEL),
    step_up=("phone_number", "kyc_level"),
    field_access=_UPDATE_FIELD_ACCESS,
    errors=(*_CHANGE_ERRORS, Code.DUPLICATE_PHONE, Code.DUPLICATE_ID_NUMBER),
    notices=(Notice.PHONE_CHANGED,),
    prepare=_require_free_number,
)
async def update_subscriber(
    request: GuardedRequest, tx: Transaction, id: SubscriberId, body: SubscriberUpdate
) -> DisclosedSubscriber:
    """Update a subscriber.

    Fields that are absent or null keep their values. `kyc_level` selects the limits, which the
    account rules define. The level's requirements are not checked here, so the audit log records a
    change to `kyc_level` or `kyc_status` as an override. `language` is the subscriber's message
    language. With `messages: essential`, the subscriber gets no receipts. Services can set only
    these two fields. A closed subscriber cannot be changed.

    Setting `restricted` to true invalidates the subscriber's statement links. It also hides the
    record from API keys, and from admins who have not verified a one-time code sent to the
    subscriber's phone. The response to such callers contains only `id`, `restricted`, `status` and
    `status_reason`.
    """
    services = request.services
    subscriber = await operations.update(tx, request.actor, id, body, settings=services.settings)
    return await _to_disclosed_record(request, tx, subscriber)


@endpoints.post(
    "/{id}/block",
    access=Access(scope="subscribers:write", roles="ACS"),
    errors=(Code.ALREADY_BLOCKED, Code.NOT_CLOSABLE),
    unguarded=Unguarded.TAKES_RIGHTS,
    objects=ObjectAccess.ANY,  # blocking protects the subscriber, even a restricted one
    notices=(Notice.WALLET_CHANGED,),
)
async def block_subscriber(
    request: RequestContext, tx: Transaction, id: SubscriberId, body: Reason
) -> DisclosedSubscriberResponse:
    """Block a subscriber.

    All later transactions from and to the wallet are declined, except refunds to the wallet, which
    are still credited. The cards keep their own status. A restricted subscriber can be blocked
    without a one-time code. If the caller may not access the subscriber, the response contains only
    `id`, `restricted`, `status` and `status_reason`.
    """
    subscriber = await operations.block(tx, request.actor, id, body.reason)
    return DisclosedSubscriberResponse(
        subscriber=await _to_disclosed_record(request, tx, subscriber)
    )


@endpoints.post(
    "/{id}/unblock",
    access=Access(scope="subscribers:write", roles="AC"),
    errors=(*_CHANGE_ERRORS, Code.NOT_BLOCKED),
    unguarded=Unguarded.CUSTOMER,
    notices=(Notice.WALLET_CHANGED,),
)
async def unblock_subscriber(
    request: RequestContext, tx: Transaction, id: SubscriberId, body: OptionalReason
) -> SubscriberResponse:
    """Unblock a subscriber.

    Active cards can be used again. Cards that were blocked individually stay blocked.
    """
    subscriber = await operations.unblock(tx, request.actor, id, body.reason)
    return SubscriberResponse(
        message="Subscriber unblocked", subscriber=_to_record(request, subscriber)
    )


@endpoints.post(
    "/{id}/close",
    access=Access(roles="A"),
    errors=_CHANGE_ERRORS,
    unguarded=Unguarded.TAKES_RIGHTS,
    notices=(Notice.WALLET_CHANGED,),
)
async def close_subscriber(
    request: RequestContext, tx: Transaction, id: SubscriberId, body: Reason
) -> SubscriberResponse:
    """Close a subscriber permanently.

    The wallet must be empty and have no funds on hold, and no transfer to another book may be
    pending, because it may come back. Otherwise the request fails with `NOT_CLOSABLE`. Later
    changes to a closed subscriber fail with the same code.
    """
    subscriber = await operations.close(tx, request.actor, id, body.reason)
    return SubscriberResponse(
        message="Subscriber closed", subscriber=_to_record(request, subscriber)
    )


@endpoints.post(
    "/{id}/verify-pin",
    access=_PIN_ACCESS,
    errors=_PIN_ERRORS,
    unguarded=Unguarded.PIN,
    objects=ObjectAccess.UNRESTRICTED | ObjectAccess.PIN,
    unnoticed=Unnoticed.NO_CHANGE,
)
async def verify_pin(
    request: RequestContext, tx: Transaction, id: SubscriberId, body: PinVerification
) -> PinVerified:
    """Verify the PIN.

    Wrong PINs are counted across all channels, including terminals. The third consecutive wrong PIN
    locks the PIN for 30 minutes, and a correct PIN resets the count.
    """
    await pin_operations.verify(
        tx, request.actor, id, body.pin, pin_verifier=request.services.pin_verifier
    )
    return PinVerified()


@endpoints.post(
    "/{id}/change-pin",
    access=_PIN_ACCESS,
    errors=(*_PIN_ERRORS, Code.SAME_PIN),
    invalid_is_400=True,
    unguarded=Unguarded.PIN,
    objects=ObjectAccess.UNRESTRICTED | ObjectAccess.PIN,
    notices=(Notice.PIN_CHANGED,),
)
async def change_pin(
    request: RequestContext, tx: Transaction, id: SubscriberId, body: PinChange
) -> SuccessResponse:
    """Change the PIN.

    A wrong old PIN counts as a wrong PIN, as in `verify-pin`. If a PIN is malformed, or the new PIN
    is too easy to guess, the request fails with 400. `SAME_PIN` is returned only if the old PIN is
    correct.
    """
    return await pin_routes.change_pin(request, tx, pin_operations, id, body)


@endpoints.post(
    "/{id}/reset-pin",
    access=_RESET_ACCESS,
    errors=_CHANGE_ERRORS,
    unguarded=Unguarded.ONE_TIME_CODE,
    unnoticed=Unnoticed.CODE,
)
async def request_pin_reset(
    request: RequestContext, tx: Transaction, id: SubscriberId
) -> SuccessResponse:
    """Request a PIN reset.

    Sends a 6-digit one-time code to the subscriber's phone. The code is valid for 5 minutes and 3
    attempts, and replaces any previous code. A phone number receives at most 1 code per minute and
    5 per hour across all endpoints. After 15 wrong codes within 24 hours, no code is sent until
    this period ends. Requests over a limit get 429 with `Retry-After`.
    """
    return await pin_routes.request_pin_reset(request, tx, pin_operations, id, "subscriber")


@endpoints.post(
    "/{id}/reset-pin/confirm",
    access=_RESET_ACCESS,
    errors=(*_CHANGE_ERRORS, Code.INVALID_OTP),
    unguarded=Unguarded.ONE_TIME_CODE,
    objects=ObjectAccess.UNRESTRICTED | ObjectAccess.OTP,
    notices=(Notice.PIN_CHANGED,),
)
async def reset_pin(
    request: RequestContext, tx: Transaction, id: SubscriberId, body: PinReset
) -> SuccessResponse:
    """Set a new PIN with the one-time code.

    The old PIN is not required, and a locked PIN is unlocked. A code becomes invalid after three
    wrong attempts, when it expires, when it is used, or when a new code is requested.
    """
    return await pin_routes.reset_pin(request, tx, pin_operations, id, body)


@endpoints.post(
    "/{id}/restricted-access",
    access=_ANY_ADMIN,
    unguarded=Unguarded.ONE_TIME_CODE,
    objects=ObjectAccess.ANY,  # it requests the access
    unnoticed=Unnoticed.CODE,
)
async def request_restricted_access(
    request: RequestContext, tx: Transaction, id: SubscriberId
) -> SuccessResponse:
    """Request access to a restricted subscriber.

    Sends a one-time code, which only this admin can use, to the subscriber's phone. The code is
    valid for 5 minutes and 3 attempts. A phone number receives at most 1 code per minute and 5 per
    hour across all endpoints. After 15 wrong codes from this admin within 24 hours, no code is sent
    until this period ends. Requests over a limit get 429 with `Retry-After`.
    """
    await restricted_access.request_access(tx, request.actor, id, vault=request.services.vault)
    return SuccessResponse(message="A one-time code was sent to the subscriber's phone")


@endpoints.post(
    "/{id}/restricted-access/verify",
    access=_ANY_ADMIN,
    errors=(Code.INVALID_OTP,),
    unguarded=Unguarded.ONE_TIME_CODE,
    objects=ObjectAccess.OTP,
    notices=(Notice.RECORD_OPENED,),
)
async def verify_restricted_access(
    request: RequestContext, tx: Transaction, id: SubscriberId, body: OneTimeCodeVerification
) -> AccessGranted:
    """Unlock a restricted subscriber with the one-time code.

    Until `expires_at`, 15 minutes from now, this admin can view and change the subscriber like any
    other subscriber.
    """
    expires_at = await restricted_access.grant_access(
        tx, request.actor, id, body.otp, vault=request.services.vault
    )
    return AccessGranted(expires_at=clock.format_rfc3339(expires_at))


@endpoints.get("/{id}/messages", access=_ANY_ADMIN, objects=ObjectAccess.ANY)
async def list_subscriber_messages(
    request: RequestContext, id: SubscriberId, query: MessageFilters
) -> Page[MessageRecord]:
    """List the messages sent to a subscriber.

    Newest first, without the text. Messages from before the phone number was assigned to the
    subscriber are not listed, because they may be for the number's previous owner.

    `status` is `queued`, `sent`, `delivered`, `read` or `failed`. If it is `failed`, `error_code`
    is the provider's or messenger's error code, or `expired` for a message not sent in time. If
    the subscriber is restricted and the caller may not access the subscriber, only one-time codes
    are listed, so that staff can see whether a code arrived.
    """
    services = request.services
    subscriber = await queries.get(services.database, id)
    template = query.template
    if subscriber.restricted and await is_hidden(
        services.database, request.caller, services.clock(), subscriber.id
    ):
        if template not in (None, ONE_TIME_CODE_TEMPLATE):
            return Page(data=[], has_more=False, next_cursor=None)
        template = ONE_TIME_CODE_TEMPLATE
    rows = await message_statuses.list_page(
        services.database,
        subscriber.phone_number,
        query,
        since=await queries.get_phone_number_owned_since(services.database, subscriber.id),
        template=template,
    )
    return paginate(rows, query, message_statuses.to_message_record, itemgetter("id"))
