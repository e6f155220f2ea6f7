"""Operations on cards: link, link to a child, block and unblock."""

from datetime import datetime, timedelta
from typing import Final

import asyncpg
import msgspec

from tapgate.api.request_context import RequestContext
from tapgate.audit.changes import diff_records
from tapgate.audit.trail import AuditTrail
from tapgate.cards import model, queries
from tapgate.cards.model import Card, RecordContext
from tapgate.clock import get_platform_day
from tapgate.ledger.pins import set_pin
from tapgate.notifications.events import publish
from tapgate.notifications.messages import enqueue_message
from tapgate.schemas.cards import CardLink, NewChildCard
from tapgate.subscribers import queries as subscribers
from tapgate.subscribers.model import Subscriber, decode_subscriber_id
from tapgate.subscribers.pins import check_subscriber_pin, get_pin_error, require_strong_pin
from tapgate.subscribers.restriction import require_editable, require_subscriber_access

_trail = AuditTrail("card")

_BLOCKED_TEMPLATE: Final = "card_blocked"
#: A message that is undelivered after this time expires: the cardholder has probably noticed the
#: block.
_NOTIFICATION_LIFETIME: Final = timedelta(hours=24)


async def link(request: RequestContext, link: CardLink) -> Card:
    async with request.services.transaction() as tx:
        holder, card = await _lock_subscriber_and_card(
            tx, request, link.subscriber_id, link.card_serial
        )
        error = get_pin_error(
            await check_subscriber_pin(tx, request, holder, link.pin, "pin_verified")
        )
        now = request.services.clock()
        error = error or model.get_link_error(card, holder, now)
        if error is None:
            after = model.link(card, holder, now)
            return await _save(tx, request, card, after, now, action="linked")
    raise error


async def link_to_child(request: RequestContext, child: NewChildCard) -> Card:
    services = request.services
    require_strong_pin(request, "child_pin", child.child_pin)
    async with services.transaction() as tx:
        holder, card = await _lock_subscriber_and_card(
            tx, request, child.parent_subscriber_id, child.card_serial
        )
        error = get_pin_error(
            await check_subscriber_pin(tx, request, holder, child.parent_pin, "pin_verified")
        )
        now = services.clock()
        error = error or model.get_link_error(card, holder, now)
        if error is None:
            child_card_count = await queries.count_child_cards(tx, holder.id, now)
            error = model.get_child_card_error(holder, child_card_count)
        if error is None:
            after = model.link_to_child(card, holder, child, services.settings.currency, now)
            await set_pin(tx, card.id, services.pin_verifier.hash(child.child_pin))
            return await _save(tx, request, card, after, now, action="linked")
    raise error


async def block(request: RequestContext, serial: str, reason: str) -> Card:
    """Block a card.

    Blocking protects the cardholder, so it requires no one-time code, even if the subscriber is
    restricted.
    """
    async with request.services.transaction() as tx:
        before = await queries.lock(tx, serial)
        now = request.services.clock()
        after = model.block(before, reason, now)
        await _notify_holder(tx, request, after, reason)
        return await _save(tx, request, before, after, now, action="blocked", reason=reason)


async def unblock(request: RequestContext, serial: str, reason: str | None) -> Card:
    async with request.services.transaction() as tx:
        before = await queries.lock(tx, serial)
        if before.subscriber_id is not None:
            holder = await subscribers.get(tx, before.subscriber_id)
            await require_editable(tx, request.caller, request.services.clock(), holder)
        now = request.services.clock()
        after = model.unblock(before, reason, now)
        return await _save(tx, request, before, after, now, action="unblocked", reason=reason)


async def _lock_subscriber_and_card(
    tx: asyncpg.Connection, request: RequestContext, subscriber_id: str, serial: str
) -> tuple[Subscriber, Card]:
    holder = await subscribers.lock(tx, decode_subscriber_id(subscriber_id))
    card = await queries.lock_for_linking(tx, serial)
    await require_subscriber_access(
        tx, request.caller, request.services.clock(), holder.id, restricted=holder.restricted
    )
    return holder, card


async def _notify_holder(
    tx: asyncpg.Connection, request: RequestContext, card: Card, reason: str
) -> None:
    """Notify the subscriber of the block, regardless of who requested it.

    A subscriber who did not request the block must learn about it.
    """
    if card.subscriber_id is None:
        return
    holder = await subscribers.get(tx, card.subscriber_id)
    await enqueue_message(
        tx,
        request.services.vault,
        to=holder.phone_number,
        template=_BLOCKED_TEMPLATE,
        parameters=[card.masked_serial, model.BLOCK_REASON_TEXTS[reason]],
        expires_at=request.services.clock() + _NOTIFICATION_LIFETIME,
    )


async def _save(
    tx: asyncpg.Connection,
    request: RequestContext,
    before: Card,
    after: Card,
    now: datetime,
    *,
    action: str,
    reason: str | None = None,
) -> Card:
    after = msgspec.structs.replace(after, updated_at=now)
    await queries.save(tx, after)
    old, new = (model.to_record(card, get_record_context(request)) for card in (before, after))
    await _trail.record(
        tx, request.actor, after.serial, action, reason=reason, changes=diff_records(old, new)
    )
    await publish(tx, f"card.{action}", new)
    return after


def get_record_context(request: RequestContext) -> RecordContext:
    """Return the context for rendering cards at the current time."""
    now, settings = request.services.clock(), request.services.settings
    return RecordContext(now, get_platform_day(now, settings.timezone), settings.currency)
