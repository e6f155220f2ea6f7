"""Operations on support requests: open, append, assign, reply and close."""

from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from tapgate.auth.actors import Actor
from tapgate.auth.disclosure import Subject, find_hidden_subjects
from tapgate.auth.owners import DISPUTES, PAYOUTS, TRANSACTIONS, OwnerView, is_visible
from tapgate.business.support import model, queries
from tapgate.business.support.model import SupportRequest
from tapgate.core.vault import Vault
from tapgate.events.audit.trail import AuditTrail, diff_records
from tapgate.events.notifications.notification_messages import enqueue_message
from tapgate.events.webhooks.webhook_events import publish
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.support import (
    MAX_MESSAGES,
    MAX_OWNER_REQUESTS,
    NewOwnerRequest,
    NewSupportMessage,
    SupportRequestStatus,
    SupportSender,
)

REPLY_TEMPLATE: Final = "support_reply"
CLOSED_TEMPLATE: Final = "support_closed"
#: The messenger does not send older messages.
_REPLY_LIFETIME: Final = timedelta(hours=24)
_LIMIT_RETRY_SECONDS: Final = "86400"

#: What a request of an owner's user can be about, by ID prefix.
_SUBJECTS: Final = {
    ids.TRANSACTION: TRANSACTIONS,
    ids.PAYOUT: PAYOUTS,
    ids.DISPUTE: DISPUTES,
}

_trail = AuditTrail("support")


async def receive(
    tx: Transaction, actor: Actor, message: NewSupportMessage, *, vault: Vault
) -> tuple[SupportRequest, bool]:
    """Append a customer's message to the phone's request, or open a request.

    If the phone number no longer belongs to the request's subscriber, the request is closed.

    Returns the request and whether it is new. Concurrent messages from a phone open one request,
    because of the unique index on unclosed requests; further messages append to it.

    A repeated message changes nothing, and gets the first message's result.
    """
    while True:
        request = await queries.find_unclosed(tx, message.phone_number)
        # After the lock, so that a repeated concurrent message finds it.
        received = await queries.find_received(tx, message.phone_number, message.message_id)
        if received is not None:
            return await queries.get(tx, received.request_id), received.number == 1
        if request is not None:
            if not await queries.has_lost_number(tx, request):
                break
            # Another person writes from this number and must not continue the conversation.
            await _close(tx, actor, request)
        if message.append_only:
            raise ApiError(Code.REQUEST_NOT_FOUND, "The phone number has no open support request.")
        request_id = tx.new_id()
        if await queries.add(tx, request_id, message.phone_number):
            await queries.add_message(
                tx,
                vault,
                request_id,
                1,
                SupportSender.CUSTOMER,
                message.text,
                message_id=message.message_id,
            )
            return await _record_opened(tx, actor, request_id), True
        # Another request was opened concurrently. It may be closed again before it is locked.
    await _append(
        tx, request, SupportSender.CUSTOMER, message.text, vault, message_id=message.message_id
    )
    after = await _save(
        tx,
        actor,
        request,
        "message_received",
        status=SupportRequestStatus.OPEN,
        assignee=request.assignee,
    )
    return after, False


async def open_for_owner(
    tx: Transaction, actor: Actor, view: OwnerView, new: NewOwnerRequest, *, vault: Vault
) -> SupportRequest:
    """Open a request of an owner's user, in the queue of the customers' requests."""
    await _require_visible(tx, view, new.about)
    if await queries.count_unclosed(tx, view.owner) >= MAX_OWNER_REQUESTS:
        raise ApiError(
            Code.RATE_LIMITED,
            f"You already have {MAX_OWNER_REQUESTS} support requests that are not closed.",
            details={"limit": MAX_OWNER_REQUESTS},
            headers={"Retry-After": _LIMIT_RETRY_SECONDS},
        )
    request_id, opened_by = tx.new_id(), actor.admin_id
    assert opened_by is not None, "API keys have no access"
    await queries.add_of_owner(tx, request_id, view.owner, opened_by, new.about)
    await queries.add_message(tx, vault, request_id, 1, SupportSender.CUSTOMER, new.text)
    return await _record_opened(tx, actor, request_id)


async def _require_visible(tx: Transaction, view: OwnerView, about: str | None) -> None:
    """Require that a question is about an object that the user sees."""
    if about is None:
        return
    for prefix, rows in _SUBJECTS.items():
        number = ids.decode(prefix, about)
        if number is not None and await is_visible(tx, view, rows, number):
            return
    raise invalid_field("about", "must be the ID of your own transaction, payout or dispute")


async def append_for_owner(
    tx: Transaction, actor: Actor, request_id: int, text: str, *, vault: Vault
) -> SupportRequest:
    """Append a message of an owner's user, which waits for support again."""
    request = await _lock_unclosed(tx, request_id)
    await _append(tx, request, SupportSender.CUSTOMER, text, vault)
    return await _save(
        tx,
        actor,
        request,
        "message_received",
        status=SupportRequestStatus.OPEN,
        assignee=request.assignee,
    )


async def _record_opened(tx: Transaction, actor: Actor, request_id: int) -> SupportRequest:
    request = await queries.get(tx, request_id)
    await _trail.record(
        tx, actor, request.public_id, "requested", changes={"status": (None, request.status)}
    )
    await publish(tx, "support.requested", model.to_event(request))
    return request


async def assign(tx: Transaction, actor: Actor, request_id: int) -> SupportRequest:
    """Assign a request to the calling admin."""
    request = await _lock_unclosed(tx, request_id)
    return await _save(
        tx, actor, request, "assigned", status=request.status, assignee=_get_admin_id(actor)
    )


async def unassign(tx: Transaction, actor: Actor, request_id: int) -> SupportRequest:
    """Return a request to the queue for other admins."""
    request = await _lock_unclosed(tx, request_id)
    return await _save(tx, actor, request, "unassigned", status=request.status, assignee=None)


async def reply(
    tx: Transaction, actor: Actor, request_id: int, text: str, *, vault: Vault
) -> SupportRequest:
    """Store a reply and enqueue it as a message to the customer's current phone number.

    Users of an owner read the reply in the portal. An unassigned request is assigned to the admin
    who replies.
    """
    request = await _lock_unclosed(tx, request_id)
    subjects = {Subject("support", request.public_id)}
    if await find_hidden_subjects(tx, actor.principal, tx.now(), subjects):
        raise ApiError(
            Code.OTP_REQUIRED, "Verify a one-time code sent to the subscriber's phone first."
        )
    await _append(tx, request, SupportSender.STAFF, text, vault)
    await _enqueue(tx, request, REPLY_TEMPLATE, [text], vault)
    return await _save(
        tx,
        actor,
        request,
        "replied",
        status=SupportRequestStatus.ANSWERED,
        assignee=request.assignee or _get_admin_id(actor),
    )


async def close(tx: Transaction, actor: Actor, request_id: int, *, vault: Vault) -> SupportRequest:
    """Close a request and tell the customer, who may still wait for a reply."""
    request = await _lock_unclosed(tx, request_id)
    await _enqueue(tx, request, CLOSED_TEMPLATE, [], vault)
    return await _close(tx, actor, request)


async def _enqueue(
    tx: Transaction, request: SupportRequest, template: str, parameters: list[str], vault: Vault
) -> None:
    """Enqueue a message to the customer's current phone number, if the request has one."""
    recipient = await queries.get_recipient(tx, request)
    if recipient is None:
        return
    phone_number, language = recipient
    await enqueue_message(
        tx,
        vault,
        to=phone_number,
        template=template,
        parameters=parameters,
        language=language,
        expires_at=tx.now() + _REPLY_LIFETIME,
    )


async def _close(tx: Transaction, actor: Actor, request: SupportRequest) -> SupportRequest:
    return await _save(
        tx, actor, request, "closed", status=SupportRequestStatus.CLOSED, assignee=request.assignee
    )


async def _lock_unclosed(tx: Transaction, request_id: int) -> SupportRequest:
    request = await queries.get(tx, request_id, for_update=True)
    model.require_not_closed(request)
    return request


async def _append(
    tx: Transaction,
    request: SupportRequest,
    sender: SupportSender,
    text: str,
    vault: Vault,
    *,
    message_id: str | None = None,
) -> None:
    total, from_sender = await queries.count_messages(tx, request.id, sender)
    if from_sender >= MAX_MESSAGES:
        raise ApiError(
            Code.RATE_LIMITED,
            f"The support request already has {MAX_MESSAGES} messages from this side.",
            details={"limit": MAX_MESSAGES},
            # Only closing the request resets the count. Its time is unknown.
            headers={"Retry-After": _LIMIT_RETRY_SECONDS},
        )
    await queries.add_message(tx, vault, request.id, total + 1, sender, text, message_id=message_id)


async def _save(
    tx: Transaction,
    actor: Actor,
    before: SupportRequest,
    action: str,
    *,
    status: str,
    assignee: int | None,
) -> SupportRequest:
    await queries.save(tx, replace(before, status=status, assignee=assignee, updated_at=tx.now()))
    after = await queries.get(tx, before.id)
    changes = diff_records(model.to_event(before), model.to_event(after))
    await _trail.record(tx, actor, after.public_id, action, changes=changes)
    return after


def _get_admin_id(actor: Actor) -> int | None:
    return ids.decode(ids.ADMIN, actor.id)
