"""PIN verification, change and reset for subscribers, child cards and agents."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, Generic, Literal, NamedTuple, TypeVar

from tapgate.auth.actors import Actor
from tapgate.core.vault import Vault
from tapgate.events.audit.entry import MASK
from tapgate.events.audit.trail import AuditTrail
from tapgate.events.notifications import codes
from tapgate.events.notifications.account_notices import (
    NoticeRecipient,
    mask_card_serial,
    send_pin_changed,
)
from tapgate.ledger.one_time_codes.codes import CodeRequest
from tapgate.ledger.pins.pin_failures import check_pin
from tapgate.ledger.pins.pin_storage import set_pin
from tapgate.ledger.pins.pin_verifier import PinVerifier
from tapgate.ledger.pins.wrong_pins import get_phone_owner
from tapgate.runtime.store.database import RaiseAfterCommit
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.clock import format_rfc3339
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.audit import AuditResult

Key = TypeVar("Key")

#: After a phone number change, the owner's PIN cannot be reset for this long.
PHONE_CHANGE_PERIOD: Final = timedelta(hours=24)

#: The audit log records that a PIN was changed, but not the PIN.
_MASKED_CHANGES = {"pin": (MASK, MASK)}


class PinOwner(NamedTuple):
    """PIN owner, as the audit log refers to it.

    `phone_number` receives the code for a reset. For a child card, it is the parent's.
    """

    resource_type: Literal["subscriber", "card", "agent"]
    resource_id: str
    holder_id: int
    phone_number: str
    phone_owner_id: int  # the subscriber or agent; for a child card, the parent
    phone_owner_name: str  # masked, for the notice
    language: str = "en"  # of messages; agents have none

    @property
    def trail(self) -> AuditTrail:
        return AuditTrail(self.resource_type)

    @property
    def reset_code_request(self) -> CodeRequest:
        """The code request for a reset.

        All callers share one code per PIN, because the code proves possession of the phone and
        does not identify the caller.
        """
        return CodeRequest("reset_pin", self.holder_id, requester=self.resource_type)


async def require_correct_pin(
    tx: Transaction,
    actor: Actor,
    owner: PinOwner,
    pin: str,
    action: str,
    *,
    pin_verifier: PinVerifier,
) -> None:
    """Check the PIN for an owner that the caller has locked.

    A failure is recorded in the audit log, and raised after the failure count is committed.
    """
    credential = None if actor.principal is None else actor.principal.pin_credential
    if credential is None:
        credential = get_phone_owner(owner.phone_owner_id, is_agent=owner.resource_type == "agent")
    error = await check_pin(tx, credential, owner.holder_id, pin, pin_verifier)
    if error is not None:
        await owner.trail.record(
            tx, actor, owner.resource_id, action, result=AuditResult.FAILURE, reason=error.code
        )
        raise RaiseAfterCommit(error)


class PinOperations(Generic[Key]):
    """Operations on the PINs of one type of resource.

    `get_owner` and `lock_owner` take a resource key, and reject a resource that the actor may not
    change. `lock_owner` also locks the account that the PIN protects.
    """

    def __init__(
        self,
        get_owner: Callable[[Transaction, Actor, Key], Awaitable[PinOwner]],
        lock_owner: Callable[[Transaction, Actor, Key], Awaitable[PinOwner]],
    ) -> None:
        self._get_owner = get_owner
        self._lock_owner = lock_owner

    async def verify(
        self, tx: Transaction, actor: Actor, key: Key, pin: str, *, pin_verifier: PinVerifier
    ) -> None:
        owner = await self._lock_owner(tx, actor, key)
        await require_correct_pin(tx, actor, owner, pin, "pin_verified", pin_verifier=pin_verifier)

    async def change(
        self,
        tx: Transaction,
        actor: Actor,
        key: Key,
        old_pin: str,
        new_pin: str,
        *,
        pin_verifier: PinVerifier,
    ) -> None:
        # A PIN change returns 400 for a weak PIN, as for a malformed one, instead of 422.
        pin_verifier.require_strong("new_pin", new_pin, error=Code.INVALID_REQUEST)
        owner = await self._lock_owner(tx, actor, key)
        await require_correct_pin(
            tx, actor, owner, old_pin, "pin_changed", pin_verifier=pin_verifier
        )
        if new_pin == old_pin:
            raise RaiseAfterCommit(ApiError(Code.SAME_PIN))
        await _set_pin(tx, actor, owner, new_pin, "pin_changed", pin_verifier=pin_verifier)

    async def request_reset(self, tx: Transaction, actor: Actor, key: Key, *, vault: Vault) -> None:
        # Do not lock the account: `reset` locks the code before the account, and the opposite order
        # could deadlock.
        owner = await self._get_owner(tx, actor, key)
        await require_settled_phone(tx, owner)
        await codes.send(
            tx, owner.reset_code_request, owner.phone_number, language=owner.language, vault=vault
        )
        await owner.trail.record(tx, actor, owner.resource_id, "pin_reset_requested")

    async def reset(
        self,
        tx: Transaction,
        actor: Actor,
        key: Key,
        code: str,
        new_pin: str,
        *,
        pin_verifier: PinVerifier,
        vault: Vault,
    ) -> None:
        """Set a new PIN with a one-time code. This resets the failure count and unlocks the PIN."""
        pin_verifier.require_strong("new_pin", new_pin)
        owner = await self._get_owner(tx, actor, key)
        await require_settled_phone(tx, owner)
        await codes.redeem(
            tx,
            actor,
            owner.reset_code_request,
            owner.phone_number,
            code,
            trail=owner.trail,
            resource_id=owner.resource_id,
            action="pin_reset",
            vault=vault,
        )
        locked = await self._lock_owner(tx, actor, key)
        if locked.phone_number != owner.phone_number:
            # The number was changed concurrently, and the code was sent to the previous one.
            raise ApiError(Code.INVALID_OTP, details={"attempts_remaining": 0})
        await _set_pin(tx, actor, locked, new_pin, "pin_reset", pin_verifier=pin_verifier)


async def require_settled_phone(tx: Transaction, owner: PinOwner) -> None:
    """Raise 403 if the phone number that receives the code was changed recently.

    Otherwise an admin could change the number and then reset the PIN with it.
    """
    table = "agents" if owner.resource_type == "agent" else "subscribers"
    changed_at = await tx.fetchval(
        f"SELECT phone_number_changed_at FROM {table} WHERE phone_number = $1", owner.phone_number
    )
    if changed_at is not None and tx.now() < changed_at + PHONE_CHANGE_PERIOD:
        until = format_rfc3339(changed_at + PHONE_CHANGE_PERIOD)
        raise ApiError(
            Code.FORBIDDEN,
            f"The phone number was changed recently. Codes sent to it are accepted from {until}.",
            details={"required": ["an older phone number"], "until": until},
        )


async def _set_pin(
    tx: Transaction,
    actor: Actor,
    owner: PinOwner,
    new_pin: str,
    action: str,
    *,
    pin_verifier: PinVerifier,
) -> None:
    await set_pin(tx, owner.holder_id, pin_verifier.hash(new_pin))
    await owner.trail.record(tx, actor, owner.resource_id, action, changes=_MASKED_CHANGES)
    recipient = NoticeRecipient(owner.phone_number, owner.phone_owner_name, owner.language)
    card = mask_card_serial(owner.resource_id) if owner.resource_type == "card" else None
    await send_pin_changed(tx, recipient, card)
