"""Operations on cards: link, link to a child, update, block and unblock."""

from datetime import datetime

import msgspec

from tapgate.auth.actors import Actor
from tapgate.business.customers.cards import model, queries, tap_history
from tapgate.business.customers.cards.model import Card
from tapgate.business.customers.subscribers import queries as subscribers
from tapgate.business.customers.subscribers.model import Subscriber
from tapgate.business.customers.subscribers.pins import build_owner
from tapgate.business.customers.subscribers.restriction import (
    require_editable,
    require_subscriber_access,
)
from tapgate.business.pins.operations import require_correct_pin
from tapgate.core.message_templates import Notice
from tapgate.core.records import require_id
from tapgate.core.settings import Settings
from tapgate.events.audit.trail import AuditTrail
from tapgate.events.notifications.account_notices import send_notice
from tapgate.events.webhooks.webhook_events import publish
from tapgate.ledger.card_proofs.proof_verifier import (
    OTHER_CARD_MESSAGE,
    ProofResult,
    find_proof_error,
)
from tapgate.ledger.pins.pin_storage import set_pin
from tapgate.ledger.pins.pin_verifier import PinVerifier
from tapgate.runtime.store.database import RaiseAfterCommit
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids, money
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.cards import CardLink, ChildCardUpdate, NewChildCard
from tapgate_client.schemas.subscribers import SubscriberLanguage
from tapgate_client.schemas.webhooks import WEBHOOK_EVENT_TYPES

_trail = AuditTrail("card")


async def link(
    tx: Transaction,
    actor: Actor,
    link: CardLink,
    *,
    pin_verifier: PinVerifier,
    settings: Settings,
    proof: ProofResult | None = None,
) -> Card:
    """Link a card to a subscriber. `proof` is the verified `card_proof`, if there is one."""
    holder, card = await _lock_subscriber_and_card(
        tx, actor, link.subscriber_id, link.card_serial, proof
    )
    await require_correct_pin(
        tx, actor, build_owner(holder), link.pin, "pin_verified", pin_verifier=pin_verifier
    )
    now = tx.now()
    raise_after_commit(model.get_link_error(card, holder, now))
    after = model.link(card, holder, now)
    return await save(tx, actor, card, after, now, "linked", settings=settings)


async def link_to_child(
    tx: Transaction,
    actor: Actor,
    child: NewChildCard,
    *,
    pin_verifier: PinVerifier,
    settings: Settings,
    proof: ProofResult | None = None,
) -> Card:
    pin_verifier.require_strong("child_pin", child.child_pin)
    holder, card = await _lock_subscriber_and_card(
        tx, actor, child.parent_subscriber_id, child.card_serial, proof
    )
    await require_correct_pin(
        tx, actor, build_owner(holder), child.parent_pin, "pin_verified", pin_verifier=pin_verifier
    )
    now = tx.now()
    raise_after_commit(model.get_link_error(card, holder, now))
    child_card_count = await queries.count_child_cards(tx, holder.id, now)
    raise_after_commit(model.get_child_card_error(holder, child_card_count))
    after = model.link_to_child(card, holder, child, settings.currency, now)
    await set_pin(tx, card.id, pin_verifier.hash(child.child_pin))
    return await save(tx, actor, card, after, now, "linked", settings=settings)


async def block(
    tx: Transaction, actor: Actor, serial: str, reason: str, *, settings: Settings
) -> Card:
    """Block a card.

    Blocking protects the cardholder, so it requires no one-time code, even if the subscriber is
    restricted.
    """
    before = await queries.lock(tx, serial)
    now = tx.now()
    after = model.block(before, reason, now)
    return await save(tx, actor, before, after, now, "blocked", reason=reason, settings=settings)


async def unblock(
    tx: Transaction, actor: Actor, serial: str, reason: str | None, *, settings: Settings
) -> Card:
    before = await queries.lock(tx, serial)
    if before.subscriber_id is not None:
        await require_editable(tx, actor, await subscribers.get(tx, before.subscriber_id))
    now = tx.now()
    after = model.unblock(before, reason, now)
    return await save(tx, actor, before, after, now, "unblocked", reason=reason, settings=settings)


async def update_child_card(
    tx: Transaction, actor: Actor, serial: str, update: ChildCardUpdate, *, settings: Settings
) -> Card:
    """Update a child card. If no value changes, no audit entry is written."""
    before = await queries.lock(tx, serial)
    await require_editable_child_card(tx, actor, before)
    after = model.apply_update(before, update, settings.currency)
    if after == before:
        return before
    saved = await save(tx, actor, before, after, tx.now(), "updated", settings=settings)
    if after.daily_limit is not None and after.daily_limit != before.daily_limit:
        await send_change_notice(tx, saved, "limited", settings.currency)
    return saved


async def require_editable_child_card(tx: Transaction, actor: Actor, card: Card) -> Subscriber:
    """Require a child card that the actor may change, and return the parent."""
    parent = None
    if card.subscriber_id is not None:
        parent = await subscribers.get(tx, card.subscriber_id)
        await require_editable(tx, actor, parent)
    model.require_child_card(card, tx.now())
    assert parent is not None, "a child card has a parent"
    return parent


async def _lock_subscriber_and_card(
    tx: Transaction,
    actor: Actor,
    subscriber_id: str,
    serial: str | None,
    proof: ProofResult | None,
) -> tuple[Subscriber, Card]:
    """Lock the subscriber and the named card. A proof is checked, but its tap is not consumed."""
    serial = serial or (None if proof is None else proof.card_serial)
    if serial is None:
        raise ApiError(Code.CARD_NOT_GENUINE)
    holder = await subscribers.lock(tx, require_id(ids.SUBSCRIBER, subscriber_id))
    card = await queries.lock_for_linking(tx, serial)
    await require_subscriber_access(
        tx, actor.principal, tx.now(), holder.id, restricted=holder.restricted
    )
    if proof is not None:
        await _require_valid_proof(tx, card, proof)
    return holder, card


async def _require_valid_proof(tx: Transaction, card: Card, proof: ProofResult) -> None:
    """Require a card proof from this card. A link that was used before raises no alert.

    People paste old links into the chat. No money moves, so this does not indicate a clone.
    """
    if proof.is_signed and proof.card_serial != card.serial:
        raise invalid_field("card_proof", OTHER_CARD_MESSAGE)
    error_code = find_proof_error(proof, card)
    if error_code is Code.CARD_PROOF_USED:
        raise ApiError(error_code)
    if error_code is not None:
        raise RaiseAfterCommit(await tap_history.reject(tx, card, proof, error_code))


def raise_after_commit(error: ApiError | None) -> None:
    """Raise an error that follows a correct PIN, so that the reset failure count is committed."""
    if error is not None:
        raise RaiseAfterCommit(error)


async def send_change_notice(
    tx: Transaction, card: Card, action: str, currency: str, reason: str | None = None
) -> None:
    """Tell the subscriber about a change that has a text, regardless of who requested it."""
    if card.subscriber_id is None or action not in model.CHANGE_TEXTS[SubscriberLanguage.EN]:
        return
    holder = await subscribers.get(tx, card.subscriber_id)
    reason_text = model.BLOCK_REASON_TEXTS[holder.language].get(reason or "", "")
    limit = money.format_money(card.daily_limit or 0, currency, holder.language)
    text = model.CHANGE_TEXTS[holder.language][action].format(reason=reason_text, limit=limit)
    await send_notice(tx, holder.notice_recipient, Notice.CARD_CHANGED, card.masked_serial, text)


async def save(
    tx: Transaction,
    actor: Actor,
    before: Card,
    after: Card,
    now: datetime,
    action: str,
    *,
    reason: str | None = None,
    settings: Settings,
) -> Card:
    after = msgspec.structs.replace(after, updated_at=now)
    await queries.save(tx, after)
    old, new = (model.to_record(card, now, settings) for card in (before, after))
    await _trail.record_change(tx, actor, after.serial, action, old, new, reason=reason)
    if (event := f"card.{action}") in WEBHOOK_EVENT_TYPES:
        await publish(tx, event, new)
    await send_change_notice(tx, after, action, settings.currency, reason)
    return after
