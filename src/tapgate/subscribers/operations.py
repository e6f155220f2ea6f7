"""What can happen to a subscriber: registered, updated, blocked, unblocked, closed."""

from datetime import date

import asyncpg
import msgspec

from tapgate.audit.changes import diff_records
from tapgate.clock import get_platform_day
from tapgate.edge.request_context import RequestContext
from tapgate.edge.transitions import Transition
from tapgate.ledger import chart
from tapgate.ledger.accounts import open_account
from tapgate.ledger.pins import set_pin
from tapgate.notifications.events import publish
from tapgate.subscribers import model, queries
from tapgate.subscribers.kyc_documents import queries as documents
from tapgate.subscribers.model import Registration, Status, Subscriber, SubscriberUpdate
from tapgate.subscribers.pins import require_strong
from tapgate.subscribers.restriction import require_changeable
from tapgate.subscribers.trail import record


async def register(call: RequestContext, registration: Registration) -> Subscriber:
    services = call.services
    require_strong(call, "pin", registration.pin)
    subscriber = model.registered(
        registration,
        id=services.new_id(),
        account_id=services.new_id(),
        currency=services.settings.currency,
        now=services.clock(),
    )
    model.require_plausible(subscriber, _today(call))
    async with services.database.transaction() as tx:
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
        state = {"status": (None, subscriber.status.upper())}
        await record(tx, call, subscriber.id, "created", changes=state)
        await publish(tx, services, "subscriber.created", model.shown(subscriber, services.clock()))
    return subscriber


async def update(call: RequestContext, subscriber_id: int, update: SubscriberUpdate) -> Subscriber:
    """What is already as asked for is no change; without any, nothing is written."""
    async with call.services.database.transaction() as tx:
        before = await queries.lock(tx, subscriber_id)
        await require_changeable(tx, call, before)
        after = model.updated(before, update)
        model.require_plausible(after, _today(call))
        if model.is_kyc_decision(before, update):
            await documents.mark_decided(tx, subscriber_id, call.services.clock())
        if after == before:
            return before
        return await save(tx, call, before, after, action="updated")


async def block(call: RequestContext, subscriber_id: int, reason: str) -> Subscriber:
    """Open to whoever may block at all, also for restricted subscribers: it protects them."""
    async with call.services.database.transaction() as tx:
        before = await queries.lock(tx, subscriber_id)
        return await _move(tx, call, before, model.BLOCK, reason)


async def unblock(call: RequestContext, subscriber_id: int, reason: str | None) -> Subscriber:
    async with call.services.database.transaction() as tx:
        before = await queries.lock(tx, subscriber_id)
        await require_changeable(tx, call, before)
        return await _move(tx, call, before, model.UNBLOCK, reason)


async def close(call: RequestContext, subscriber_id: int, reason: str) -> Subscriber:
    """For good, once the wallet is empty."""
    async with call.services.database.transaction() as tx:
        before = await queries.lock(tx, subscriber_id)
        await require_changeable(tx, call, before)
        return await _move(tx, call, before, model.CLOSE, reason)


async def _move(
    tx: asyncpg.Connection,
    call: RequestContext,
    before: Subscriber,
    move: Transition[Status],
    reason: str | None,
) -> Subscriber:
    after = model.moved(before, move, reason)
    return await save(tx, call, before, after, action=move.event, reason=reason)


async def save(
    tx: asyncpg.Connection,
    call: RequestContext,
    before: Subscriber,
    after: Subscriber,
    *,
    action: str,
    reason: str | None = None,
) -> Subscriber:
    """Store a change with its audit entry and its events."""
    now = call.services.clock()
    after = msgspec.structs.replace(after, updated_at=now)
    await queries.save(tx, after)
    if after.restricted and not before.restricted:
        await queries.end_statement_links(tx, after.id)
    shown = model.shown(after, now)
    changes = diff_records(model.shown(before, now), shown)
    await record(tx, call, after.id, action, reason=reason, changes=changes)
    for event in model.events_of(before, after):
        await publish(tx, call.services, event, shown)
    return after


def _today(call: RequestContext) -> date:
    return get_platform_day(call.services.clock(), call.services.settings.timezone)
