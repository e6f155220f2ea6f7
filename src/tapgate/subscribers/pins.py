"""Verification, change and reset of a subscriber's PIN."""

from tapgate.audit.entry import MASK
from tapgate.audit.trail import AuditTrail
from tapgate.auth.actors import Actor
from tapgate.errors import ApiError, Code
from tapgate.ledger.pin_failures import check_pin
from tapgate.one_time_codes.codes import CodeRequest
from tapgate.pins.storage import set_pin
from tapgate.pins.verifier import PinVerifier
from tapgate.schemas.audit import AuditResult
from tapgate.store.database import RaiseAfterCommit
from tapgate.store.transaction import Transaction
from tapgate.subscribers import codes, queries
from tapgate.subscribers.model import Subscriber
from tapgate.subscribers.restriction import require_editable
from tapgate.vault import Vault

#: The audit log records that a PIN was changed, but not the PIN.
_MASKED_CHANGES = {"pin": (MASK, MASK)}

_trail = AuditTrail("subscriber")


async def verify_pin(
    tx: Transaction, actor: Actor, subscriber_id: int, pin: str, *, pin_verifier: PinVerifier
) -> None:
    subscriber = await queries.lock_editable(tx, actor, subscriber_id)
    await require_correct_pin(tx, actor, subscriber, pin, "pin_verified", pin_verifier=pin_verifier)


async def change_pin(
    tx: Transaction,
    actor: Actor,
    subscriber_id: int,
    old_pin: str,
    new_pin: str,
    *,
    pin_verifier: PinVerifier,
) -> None:
    # This endpoint returns 400 for a weak PIN, as for a malformed one, instead of 422.
    pin_verifier.require_strong("new_pin", new_pin, error=Code.INVALID_REQUEST)
    subscriber = await queries.lock_editable(tx, actor, subscriber_id)
    await require_correct_pin(
        tx, actor, subscriber, old_pin, "pin_changed", pin_verifier=pin_verifier
    )
    if new_pin == old_pin:
        raise RaiseAfterCommit(ApiError(Code.SAME_PIN))
    await set_pin(tx, subscriber.id, pin_verifier.hash(new_pin))
    await _trail.record(tx, actor, subscriber.public_id, "pin_changed", changes=_MASKED_CHANGES)


async def request_pin_reset(
    tx: Transaction, actor: Actor, subscriber_id: int, *, vault: Vault
) -> None:
    # Do not lock the account: `reset_pin` locks the code before the account, and the opposite order
    # could deadlock.
    subscriber = await queries.get(tx, subscriber_id)
    await require_editable(tx, actor, subscriber)
    await codes.send(tx, subscriber, _build_reset_code_request(subscriber.id), vault=vault)
    await _trail.record(tx, actor, subscriber.public_id, "pin_reset_requested")


async def reset_pin(
    tx: Transaction,
    actor: Actor,
    subscriber_id: int,
    code: str,
    new_pin: str,
    *,
    pin_verifier: PinVerifier,
    vault: Vault,
) -> None:
    """Set a new PIN with a one-time code. This resets the failure count and unlocks the PIN."""
    pin_verifier.require_strong("new_pin", new_pin)
    await require_editable(tx, actor, await queries.get(tx, subscriber_id))
    await codes.redeem(
        tx, actor, _build_reset_code_request(subscriber_id), code, "pin_reset", vault=vault
    )
    subscriber = await queries.lock_editable(tx, actor, subscriber_id)
    await set_pin(tx, subscriber.id, pin_verifier.hash(new_pin))
    await _trail.record(tx, actor, subscriber.public_id, "pin_reset", changes=_MASKED_CHANGES)


async def require_correct_pin(
    tx: Transaction,
    actor: Actor,
    subscriber: Subscriber,
    pin: str,
    action: str,
    *,
    pin_verifier: PinVerifier,
) -> None:
    """Check the PIN of a subscriber that the caller has locked.

    A failure is recorded in the audit log, and raised after the commit of the failure count.
    """
    error = (await check_pin(tx, subscriber.id, pin, pin_verifier.matches)).error
    if error is not None:
        await _trail.record(
            tx, actor, subscriber.public_id, action, result=AuditResult.FAILURE, reason=error.code
        )
        raise RaiseAfterCommit(error)


def _build_reset_code_request(subscriber_id: int) -> CodeRequest:
    """Build the code request for a PIN reset.

    All callers share one code per subscriber, because the code proves possession of the phone and
    does not identify the caller.
    """
    return CodeRequest("reset_pin", subscriber_id, requester="subscriber")
