"""Operations on subscribers: register, update, block, unblock and close."""

import msgspec

from tapgate.auth.actors import Actor
from tapgate.business.customers.subscribers import book_numbers, model, phone_changes, queries
from tapgate.business.customers.subscribers.kyc_documents import queries as documents
from tapgate.business.customers.subscribers.model import Subscriber
from tapgate.business.owners.status_transitions import Transition
from tapgate.core.message_templates import Notice
from tapgate.core.settings import Settings
from tapgate.events.audit.trail import AuditTrail
from tapgate.events.notifications.account_notices import send_notice, send_phone_changed
from tapgate.events.webhooks.webhook_events import publish
from tapgate.ledger import chart
from tapgate.ledger.accounts import open_account
from tapgate.ledger.pins.pin_storage import set_pin
from tapgate.ledger.pins.pin_verifier import PinVerifier
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.clock import get_platform_day
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.subscribers import (
    KycStatus,
    Registration,
    SubscriberStatus,
    SubscriberUpdate,
)

_trail = AuditTrail("subscriber")


async def register(
    tx: Transaction,
    actor: Actor,
    registration: Registration,
    *,
    pin_verifier: PinVerifier,
    settings: Settings,
) -> Subscriber:
    pin_verifier.require_strong("pin", registration.pin)
    now = tx.now()
    subscriber = model.build_subscriber(
        registration, id=tx.new_id(), account_id=tx.new_id(), currency=settings.currency, now=now
    )
    model.require_plausible_birth_date(subscriber, get_platform_day(now, settings.timezone))
    await open_account(
        tx,
        id=subscriber.account_id,
        kind=chart.WALLET,
        owner_id=subscriber.id,
        holder_name=subscriber.name,
        public_name=subscriber.public_name,
        currency=subscriber.currency,
        kyc_level=subscriber.kyc_level,
    )
    await queries.add(tx, subscriber)
    await set_pin(tx, subscriber.id, pin_verifier.hash(registration.pin))
    if settings.book_peers:
        await book_numbers.add_check(tx, subscriber.id)
    changes = {"status": (None, subscriber.status)}
    await _trail.record(tx, actor, subscriber.public_id, "created", changes=changes)
    await publish(tx, "subscriber.created", model.to_record(subscriber, now))
    return subscriber


async def update(
    tx: Transaction,
    actor: Actor,
    subscriber_id: int,
    update: SubscriberUpdate,
    *,
    settings: Settings,
) -> Subscriber:
    """Update a subscriber. If no value changes, no audit entry or event is written.

    A KYC decision marks the documents uploaded so far as decided, even if no value changes. The
    audit log records a KYC level or status change as an override, because the level's requirements
    were not checked.
    """
    before = await queries.lock_editable(tx, actor, subscriber_id)
    after = model.apply_update(before, update, tx.now())
    if after.phone_number != before.phone_number:
        await phone_changes.require_uninvolved(tx, actor, subscriber_id)
    model.require_plausible_birth_date(after, get_platform_day(tx.now(), settings.timezone))
    if model.is_kyc_decision(before, update):
        rejected = update.kyc_status == KycStatus.REJECTED
        await documents.mark_decided(tx, subscriber_id, tx.now(), rejected=rejected)
    if after == before:
        return before
    if settings.book_peers and after.phone_number != before.phone_number:
        await book_numbers.add_check(tx, after.id)
    is_override = (after.kyc_level, after.kyc_status) != (before.kyc_level, before.kyc_status)
    return await save(tx, actor, before, after, action="kyc_override" if is_override else "updated")


async def block(tx: Transaction, actor: Actor, subscriber_id: int, reason: str) -> Subscriber:
    """Block a subscriber.

    Blocking protects the subscriber, so it requires no one-time code, even if the subscriber is
    restricted.
    """
    before = await queries.lock(tx, subscriber_id)
    return await _change_status(tx, actor, before, model.BLOCK, reason)


async def unblock(
    tx: Transaction, actor: Actor, subscriber_id: int, reason: str | None
) -> Subscriber:
    before = await queries.lock_editable(tx, actor, subscriber_id)
    await phone_changes.require_uninvolved(tx, actor, subscriber_id)
    after = await _change_status(tx, actor, before, model.UNBLOCK, reason)
    await phone_changes.clear_vetoes(tx, subscriber_id)
    return after


async def close(tx: Transaction, actor: Actor, subscriber_id: int, reason: str) -> Subscriber:
    """Close a subscriber permanently. The wallet must be empty, with no funds on hold.

    A transfer that another book has not credited yet may come back to the wallet.
    """
    before = await queries.lock_editable(tx, actor, subscriber_id)
    await phone_changes.require_uninvolved(tx, actor, subscriber_id)
    if await queries.has_open_book_transfer(tx, before.account_id):
        raise ApiError(Code.NOT_CLOSABLE, "Another book has not credited a transfer yet.")
    return await _change_status(tx, actor, before, model.CLOSE, reason)


async def _change_status(
    tx: Transaction,
    actor: Actor,
    before: Subscriber,
    transition: Transition[SubscriberStatus],
    reason: str | None,
) -> Subscriber:
    after = model.apply_transition(before, transition, reason)
    return await save(tx, actor, before, after, action=transition.event, reason=reason)


async def save(
    tx: Transaction,
    actor: Actor,
    before: Subscriber,
    after: Subscriber,
    *,
    action: str,
    reason: str | None = None,
) -> Subscriber:
    """Store a change with its audit entry, events and notices; return the updated subscriber.

    A change that takes access away ends the subscriber's statement links, which work without
    credentials.
    """
    now = tx.now()
    after = msgspec.structs.replace(after, updated_at=now)
    await queries.save(tx, after)
    if model.loses_access(before, after):
        await queries.delete_statement_links(tx, after.id)
    old, new = model.to_record(before, now), model.to_record(after, now)
    await _trail.record_change(tx, actor, new.id, action, old, new, reason=reason)
    for event in model.list_events(before, after):
        await publish(tx, event, new)
    await _send_notices(tx, before, after)
    if after.phone_number != before.phone_number:
        await phone_changes.record(tx, actor, after.id, before.phone_number, after.phone_number)
    return after


async def _send_notices(tx: Transaction, before: Subscriber, after: Subscriber) -> None:
    recipient = after.notice_recipient
    if after.phone_number != before.phone_number:
        await send_phone_changed(tx, recipient, before.phone_number, can_object=True)
    if after.status != before.status:
        text = model.STATUS_TEXTS[after.language][after.status]
        await send_notice(tx, recipient, Notice.WALLET_CHANGED, text)
