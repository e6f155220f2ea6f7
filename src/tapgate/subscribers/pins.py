"""Verification, change and reset of a subscriber's PIN."""

import asyncpg

from tapgate.api.request_context import RequestContext
from tapgate.audit.entry import MASK
from tapgate.auth.one_time_codes import CodeRequest
from tapgate.auth.pins import is_weak_pin
from tapgate.errors import ApiError, Code
from tapgate.ledger.pin_lockout import PinVerdict
from tapgate.ledger.pins import check_pin, set_pin
from tapgate.subscribers import codes, queries
from tapgate.subscribers.audit_trail import record_audit_entry
from tapgate.subscribers.model import Subscriber
from tapgate.subscribers.restriction import require_editable

#: The audit log records that a PIN was changed, but not the PIN.
_MASKED_CHANGES = {"pin": (MASK, MASK)}


async def verify_pin(request: RequestContext, subscriber_id: int, pin: str) -> None:
    async with request.services.transaction() as tx:
        subscriber = await _lock_subscriber(tx, request, subscriber_id)
        verdict = await check_subscriber_pin(tx, request, subscriber, pin, "pin_verified")
    _require_correct(verdict)


async def change_pin(
    request: RequestContext, subscriber_id: int, old_pin: str, new_pin: str
) -> None:
    # This endpoint returns 400 for a weak PIN, as for a malformed one, instead of 422.
    require_strong_pin(request, "new_pin", new_pin, error=Code.INVALID_REQUEST)
    is_same = new_pin == old_pin
    async with request.services.transaction() as tx:
        subscriber = await _lock_subscriber(tx, request, subscriber_id)
        verdict = await check_subscriber_pin(tx, request, subscriber, old_pin, "pin_changed")
        if verdict.code is None and not is_same:
            await set_pin(tx, subscriber.id, request.services.pin_verifier.hash(new_pin))
            await record_audit_entry(
                tx, request, subscriber.id, "pin_changed", changes=_MASKED_CHANGES
            )
    _require_correct(verdict)
    if is_same:
        raise ApiError(Code.SAME_PIN)


async def request_pin_reset(request: RequestContext, subscriber_id: int) -> None:
    async with request.services.transaction() as tx:
        # Do not lock the account: `reset_pin` locks the code before the account, and the opposite
        # order could deadlock.
        subscriber = await queries.get(tx, subscriber_id)
        await require_editable(tx, request.caller, request.services.clock(), subscriber)
        await codes.send(tx, request, subscriber, _build_reset_code_request(subscriber.id))
        await record_audit_entry(tx, request, subscriber.id, "pin_reset_requested")


async def reset_pin(request: RequestContext, subscriber_id: int, code: str, new_pin: str) -> None:
    """Set a new PIN with a one-time code. This resets the failure count and unlocks the PIN."""
    require_strong_pin(request, "new_pin", new_pin)
    database = request.services.database
    await require_editable(
        database,
        request.caller,
        request.services.clock(),
        await queries.get(database, subscriber_id),
    )
    async with codes.redeem(
        request, _build_reset_code_request(subscriber_id), code, "pin_reset"
    ) as tx:
        subscriber = await _lock_subscriber(tx, request, subscriber_id)
        await set_pin(tx, subscriber.id, request.services.pin_verifier.hash(new_pin))
        await record_audit_entry(tx, request, subscriber.id, "pin_reset", changes=_MASKED_CHANGES)


def require_strong_pin(
    request: RequestContext, field: str, pin: str, *, error: Code = Code.VALIDATION_FAILED
) -> None:
    """Reject a PIN that is easy to guess, if the setting `refuse_weak_pins` is on."""
    if request.services.settings.refuse_weak_pins and is_weak_pin(pin):
        message = "is too easy to guess"
        raise ApiError(error, f"{field} {message}", details={"fields": {field: message}})


async def _lock_subscriber(
    tx: asyncpg.Connection, request: RequestContext, subscriber_id: int
) -> Subscriber:
    """Lock the subscriber and require that the caller may make changes.

    The lock serializes PIN attempts from all channels.
    """
    subscriber = await queries.lock(tx, subscriber_id)
    await require_editable(tx, request.caller, request.services.clock(), subscriber)
    return subscriber


async def check_subscriber_pin(
    tx: asyncpg.Connection, request: RequestContext, subscriber: Subscriber, pin: str, action: str
) -> PinVerdict:
    """Check the PIN of a subscriber that the caller has locked.

    A failure is recorded in the audit log and returned, not raised, so that the failure count is
    committed.
    """
    services = request.services
    verdict = await check_pin(
        tx, subscriber.id, pin, services.pin_verifier.matches, services.clock(), services.new_id
    )
    if verdict.code is not None:
        await record_audit_entry(
            tx, request, subscriber.id, action, result="failure", reason=verdict.code
        )
    return verdict


def get_pin_error(verdict: PinVerdict) -> ApiError | None:
    return None if verdict.code is None else ApiError(verdict.code, details=verdict.details)


def _require_correct(verdict: PinVerdict) -> None:
    error = get_pin_error(verdict)
    if error is not None:
        raise error


def _build_reset_code_request(subscriber_id: int) -> CodeRequest:
    """Build the code request for a PIN reset.

    All callers share one code per subscriber, because the code proves possession of the phone and
    does not identify the caller.
    """
    return CodeRequest("reset_pin", subscriber_id, requester="subscriber")
