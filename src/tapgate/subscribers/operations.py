"""Operations on subscribers: register, update, block, unblock and close."""

from datetime import date

import asyncpg
import msgspec

from tapgate.api.request_context import RequestContext
from tapgate.api.transitions import Transition
from tapgate.audit.changes import diff_records
from tapgate.clock import get_platform_day
from tapgate.ledger import chart
from tapgate.ledger.accounts import open_account
from tapgate.ledger.pins import set_pin
from tapgate.notifications.events import publish
from tapgate.schemas.subscribers import Registration, SubscriberUpdate
from tapgate.subscribers import model, queries
from tapgate.subscribers.audit_trail import record_audit_entry
from tapgate.subscribers.kyc_documents import queries as documents
from tapgate.subscribers.model import AccountStatus, Subscriber
from tapgate.subscribers.pins import require_strong_pin
from tapgate.subscribers.restriction import require_editable


async def register(request: RequestContext, registration: Registration) -> Subscriber:
    services = request.services
    require_strong_pin(request, "pin", registration.pin)
    subscriber = model.build_subscriber(
        registration,
        id=services.new_id(),
        account_id=services.new_id(),
        currency=services.settings.currency,
        now=services.clock(),
    )
    model.require_plausible_birth_date(subscriber, _get_today(request))
    async with services.transaction() as tx:
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
        await set_pin(tx, subscriber.id, services.pin_verifier.hash(registration.pin))
        changes = {"status": (None, subscriber.status.upper())}
        await record_audit_entry(tx, request, subscriber.id, "created", changes=changes)
        await publish(tx, "subscriber.created", model.to_record(subscriber, services.clock()))
    return subscriber


async def update(
    request: RequestContext, subscriber_id: int, update: SubscriberUpdate
) -> Subscriber:
    """Update a subscriber. If no value changes, no audit entry or event is written.

    A KYC decision marks the documents uploaded so far as decided, even if no value changes.
    """
    async with request.services.transaction() as tx:
        before = await queries.lock(tx, subscriber_id)
        await require_editable(tx, request.caller, request.services.clock(), before)
        after = model.apply_update(before, update)
        model.require_plausible_birth_date(after, _get_today(request))
        if model.is_kyc_decision(before, update):
            await documents.mark_decided(tx, subscriber_id, request.services.clock())
        if after == before:
            return before
        return await save(tx, request, before, after, action="updated")


async def block(request: RequestContext, subscriber_id: int, reason: str) -> Subscriber:
    """Block a subscriber.

    Blocking protects the subscriber, so it requires no one-time code, even if the subscriber is
    restricted.
    """
    async with request.services.transaction() as tx:
        before = await queries.lock(tx, subscriber_id)
        return await _change_status(tx, request, before, model.BLOCK, reason)


async def unblock(request: RequestContext, subscriber_id: int, reason: str | None) -> Subscriber:
    async with request.services.transaction() as tx:
        before = await queries.lock(tx, subscriber_id)
        await require_editable(tx, request.caller, request.services.clock(), before)
        return await _change_status(tx, request, before, model.UNBLOCK, reason)


async def close(request: RequestContext, subscriber_id: int, reason: str) -> Subscriber:
    """Close a subscriber permanently. The wallet must be empty, with no funds on hold."""
    async with request.services.transaction() as tx:
        before = await queries.lock(tx, subscriber_id)
        await require_editable(tx, request.caller, request.services.clock(), before)
        return await _change_status(tx, request, before, model.CLOSE, reason)


async def _change_status(
    tx: asyncpg.Connection,
    request: RequestContext,
    before: Subscriber,
    transition: Transition[AccountStatus],
    reason: str | None,
) -> Subscriber:
    after = model.apply_transition(before, transition, reason)
    return await save(tx, request, before, after, action=transition.event, reason=reason)


async def save(
    tx: asyncpg.Connection,
    request: RequestContext,
    before: Subscriber,
    after: Subscriber,
    *,
    action: str,
    reason: str | None = None,
) -> Subscriber:
    """Store a change with its audit entry and events, and return the updated subscriber.

    If the subscriber becomes restricted, the subscriber's statement links are deleted.
    """
    now = request.services.clock()
    after = msgspec.structs.replace(after, updated_at=now)
    await queries.save(tx, after)
    if after.restricted and not before.restricted:
        await queries.delete_statement_links(tx, after.id)
    record = model.to_record(after, now)
    changes = diff_records(model.to_record(before, now), record)
    await record_audit_entry(tx, request, after.id, action, reason=reason, changes=changes)
    for event in model.list_events(before, after):
        await publish(tx, event, record)
    return after


def _get_today(request: RequestContext) -> date:
    return get_platform_day(request.services.clock(), request.services.settings.timezone)
